// The panel of events: the latest first, as they come.

import { byId, flash, h } from "./dom.js";
import { changeName, clock, compact, word } from "./format.js";

const KEPT_MAX = 200;
const DRAW_MS = 250;

/** Keeps the newest events and shows those of one node, or of all. */
export class EventPanel {
  constructor(nameOfId) {
    this.nameOfId = nameOfId;
    this.events = [];
    this.items = new Map(); // event id → list item
    this.nodeId = null;
    this.since = null;
    this.timer = null;
  }

  hear(event) {
    this.events.unshift(event);
    this.events.length = Math.min(this.events.length, KEPT_MAX);
    this.draw();
  }

  /** Show one node's events, or with null everyone's. */
  only(nodeId, name) {
    this.nodeId = nodeId;
    byId("events-scope").textContent = nodeId ? `of ${name ?? "this node"}` : "";
    this.draw();
  }

  reset() {
    this.events = [];
    this.since = new Date().toISOString();
    this.draw();
  }

  /** Draw soon: a burst of events is drawn once. */
  draw() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.drawNow();
    }, DRAW_MS);
  }

  drawNow() {
    const shown = this.events.filter((event) => this.nodeId === null || event.nodeId === this.nodeId);
    const list = byId("event-list");
    const fresh = [];
    const items = new Map();
    for (const event of shown) {
      const name = this.nameOfId(event.nodeId);
      let item = this.items.get(event.id);
      if (!item || item.dataset.name !== name) {
        if (!item) fresh.push(event.id);
        item = itemOf(event, name);
      }
      items.set(event.id, item);
    }
    this.items = items;
    list.replaceChildren(...items.values());
    if (items.size === 0) {
      list.append(h("li", { class: "muted" }, this.since ? `None since ${clock(this.since)}.` : "None yet."));
    }
    flash(fresh.map((id) => items.get(id)));
  }
}

function itemOf(event, name) {
  const { title, detail, tone } = told(event);
  return h(
    "li",
    { "data-name": name, "data-type": event.type },
    h("time", { title: new Date(event.at).toLocaleString() }, clock(event.at)),
    h("span", { class: "what", "data-tone": tone }, title),
    event.nodeId && h("a", { href: `#/node/${event.nodeId}` }, name),
    detail && h("span", { class: "detail" }, detail),
  );
}

function told(event) {
  switch (event.__typename) {
    case "NodeInventoryChanged": {
      const changes = event.changes.length;
      const detail = [event.sections.join(", "), changes > 0 && `${changes} ${changes === 1 ? "change" : "changes"}`];
      return { title: event.advisory ? "Inventory (advisory)" : "Inventory", detail: detail.filter(Boolean).join(" · ") };
    }
    case "NodeHardwareChanged": {
      const { type, deviceId, before, after } = event.change;
      const tone = type === "GPU_MISSING" ? "bad" : null;
      const detail = type === "GPU_MISSING" || type === "GPU_ADDED" ? deviceId : `${compact(before)} → ${compact(after)}`;
      return { title: changeName(type), detail, tone };
    }
    case "NodeConditionChanged": {
      const holds = event.status === "TRUE";
      return {
        title: `${event.condition} ${word(event.status)}`,
        detail: [event.reason, event.message].filter(Boolean).join(": "),
        tone: holds ? (event.noSchedule ? "bad" : "warn") : event.status === "FALSE" ? "good" : null,
      };
    }
    case "DeviceHealthChanged":
      return {
        title: `${event.reason} ${event.end ? word(event.end) : "raised"}`,
        detail: [event.deviceId, event.message].filter(Boolean).join(": "),
        tone: event.end ? "good" : "bad",
      };
    default:
      return { title: event.type, detail: event.payload ? compact(event.payload) : "" };
  }
}
