// Facts of a section or device: a value, or the reason why there is none.

import { h } from "./dom.js";
import { word } from "./format.js";

/** Reads and shows the facts of one document with its `notKnown` list. */
export class Facts {
  constructor(document, root = "") {
    this.document = document;
    this.root = root;
    this.reasons = new Map(document.notKnown.map(({ fact, availability }) => [fact, availability]));
  }

  /** The reason why a path has no value: its own, or that of what it is a part of. */
  reason(path) {
    for (let place = path; place; place = place.slice(0, Math.max(0, place.lastIndexOf(".")))) {
      if (this.reasons.has(place)) return this.reasons.get(place);
    }
    return null;
  }

  at(path) {
    return path.split(".").reduce((value, name) => value?.[name] ?? null, this.document);
  }

  /** Show the fact at a path; `absent` is what its absence means where that is an answer of its own. */
  show(path, format = String, absent = null) {
    return h("span", { "data-fact": this.root + path }, this.said(path, format, absent));
  }

  said(path, format, absent) {
    const value = this.at(path);
    const reason = this.reason(path);
    const empty = value === null || (Array.isArray(value) && value.length === 0);
    if (!empty) return format(value);
    if (reason) return unknown(reason);
    if (value === null) return absent === null ? unknown(null) : none(absent);
    return none("none");
  }
}

export const none = (text) => h("span", { class: "muted" }, text);

/** What stands where a value should: never a zero, never a blank. */
export function unknown(reason) {
  const why = reason && reason !== "UNKNOWN" ? ` (${word(reason).replaceAll("-", " ")})` : "";
  return h("span", { class: "unknown" }, `unknown${why}`);
}

/** A list of labels with facts. */
export function factList(entries) {
  return h("dl", { class: "facts" }, entries.map(([label, content]) => h("div", null, h("dt", null, label), h("dd", null, content))));
}

/** A table; `columns` are labels, `rows` lists of cells, each row optionally with an id for marking changes. */
export function table(caption, columns, rows, { empty = none("none"), key = null } = {}) {
  if (rows.length === 0) return h("div", { class: "block" }, h("h3", null, caption), h("p", null, empty));
  return h(
    "div",
    { class: "block" },
    caption && h("h3", null, caption, h("span", { class: "muted" }, ` ${rows.length}`)),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "Table" },
      h(
        "table",
        { class: "data" },
        h("thead", null, h("tr", null, columns.map((label) => h("th", { scope: "col" }, label)))),
        h("tbody", null, rows.map((cells, index) => h("tr", { "data-id": key?.(index) ?? null }, cells.map((content) => h("td", null, content))))),
      ),
    ),
  );
}
