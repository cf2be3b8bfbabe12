// A section's bytes as they were received: to look at and to download.

import { ask } from "./api.js";
import { byId, h } from "./dom.js";
import { code, count, indented } from "./format.js";
import { RAW } from "./queries.js";

/** The two buttons of a section; `snapshotId()` says whose bytes are meant when one is pressed. */
export function rawButtons(section, title, snapshotId) {
  const button = (label, act) =>
    h(
      "button",
      {
        type: "button",
        "aria-label": `${label} the section ${title} as received`,
        click: async ({ currentTarget }) => {
          currentTarget.removeAttribute("title");
          try {
            const { snapshot } = await ask(RAW, { id: snapshotId(), section });
            act(section, snapshot.sections);
          } catch (error) {
            show("Not read", [h("p", { class: "problem" }, error.message)]);
          }
        },
      },
      label,
    );
  return h("span", { class: "buttons" }, button("View", view), button("Download", download));
}

const bytesOf = (raw) => Uint8Array.from(atob(raw), (char) => char.charCodeAt(0));

function view(section, { raw, sha256 }) {
  const bytes = bytesOf(raw);
  const text = new TextDecoder().decode(bytes);
  show(`${section}.json`, [
    h("p", { class: "muted" }, `${count(bytes.length)} bytes as received, indented here for reading. SHA-256 `, code(sha256)),
    h("pre", { tabindex: "0" }, indented(text)),
  ]);
}

function download(section, { raw }) {
  const address = URL.createObjectURL(new Blob([bytesOf(raw)], { type: "application/json" }));
  h("a", { href: address, download: `${section}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function show(title, content) {
  const dialog = byId("raw");
  dialog.replaceChildren(
    h(
      "header",
      null,
      h("h2", { id: "raw-title" }, title),
      h("button", { type: "button", click: () => dialog.close() }, "Close"),
    ),
    ...content,
  );
  dialog.showModal();
}
