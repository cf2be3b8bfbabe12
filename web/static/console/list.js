// The list of nodes: pages by keyset, rows that follow the feed.

import { ask } from "./api.js";
import { byId, flash, h } from "./dom.js";
import { count, moment, pill, tickTimes, word } from "./format.js";
import { COUNT, NODES, ROWS } from "./queries.js";
import { Refresh } from "./refresh.js";

const STATES = [
  "READY", "PROVISIONING", "CORDONED", "DRAINING", "MAINTENANCE", "DISCONNECTED", "UNREACHABLE", "LOST", "RETIRED",
];
const TYPING_MS = 250;
const COUNT_MS = 1000;
const LIVENESS_MS = 15_000;
const RETRY_MS = 3000;

export const nameOf = (node) => node.hostname ?? node.displayName ?? node.identityKey;

// As the server orders by HOSTNAME.
const keyOf = (node) => `${node.hostname ?? ""}\0${node.id}`;

/** The list; `refused(error)` hears what the server refuses, `named(nodes)` every node that was read. */
export class NodeList {
  constructor({ refused, named }) {
    this.refused = refused;
    this.named = named;
    this.rows = new Map(); // id → { node, key, row }
    this.order = []; // the same entries, sorted by key
    this.visible = new Set();
    this.refresh = new Refresh((ids) => this.readRows(ids), refused);
    this.page = null;
    this.loading = 0;
    this.heardWhileLoading = new Set();
    this.filter = { text: "", state: "" };
    this.watcher = new IntersectionObserver((entries) => this.watch(entries));
    this.prepare();
  }

  prepare() {
    byId("state").replaceChildren(
      h("option", { value: "" }, "All states"),
      ...STATES.map((state) => h("option", { value: state }, word(state))),
    );
    let typing;
    byId("text").addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.filterBy(), TYPING_MS);
    });
    byId("state").addEventListener("change", () => this.filterBy());
    byId("filter").addEventListener("submit", (event) => {
      event.preventDefault();
      this.filterBy();
    });
    byId("more").addEventListener("click", () => this.load({ more: true }));
    // Neither a heartbeat nor a first hello is an event: what is on the screen, and how many there are, is read again.
    setInterval(() => {
      if (document.hidden || byId("list").hidden || !this.page) return;
      this.refresh.add(...this.visible);
      this.recount();
    }, LIVENESS_MS);
  }

  filterBy() {
    const filter = { text: byId("text").value.trim(), state: byId("state").value };
    if (filter.text === this.filter.text && filter.state === this.filter.state) return;
    this.filter = filter;
    this.load();
  }

  /** The filter as the server takes it. */
  get variables() {
    const { text, state } = this.filter;
    return { filter: { ...(text && { text }), ...(state && { state: [state] }) } };
  }

  /** Read the first page anew, or the next one; an answer to an older question is dropped. */
  async load({ more = false } = {}) {
    const turn = ++this.loading;
    this.heardWhileLoading.clear();
    byId("more").disabled = true;
    let page;
    try {
      page = (await ask(NODES, { ...this.variables, after: more ? this.page.endCursor : null })).nodes;
    } catch (error) {
      if (turn !== this.loading) return;
      this.refused(error);
      if (error.code === "UNREACHABLE") setTimeout(() => turn === this.loading && this.load({ more }), RETRY_MS);
      return;
    } finally {
      if (turn === this.loading) byId("more").disabled = false;
    }
    if (turn !== this.loading) return;
    if (!more) this.forget();
    this.page = page.pageInfo;
    this.named(page.nodes);
    this.append(page.nodes);
    this.total = page.totalCount;
    this.describe();
    // What was heard meanwhile may be newer than this page.
    this.refresh.add(...this.heardWhileLoading);
  }

  forget() {
    this.watcher.disconnect();
    this.visible.clear();
    this.rows.clear();
    this.order = [];
    byId("rows").replaceChildren();
  }

  /** Start over, as after signing out. */
  reset() {
    this.loading++;
    this.page = null;
    this.refresh.clear();
    this.forget();
  }

  append(nodes) {
    const fragment = document.createDocumentFragment();
    for (const node of nodes) {
      if (this.rows.has(node.id)) {
        this.update(node);
        continue;
      }
      const entry = this.entry(node);
      this.order.push(entry);
      fragment.append(entry.row);
    }
    byId("rows").append(fragment);
    this.order.sort((one, other) => (one.key < other.key ? -1 : 1));
  }

  entry(node) {
    const entry = { node, key: keyOf(node), row: h("tr", { "data-id": node.id }, cellsOf(node)) };
    this.rows.set(node.id, entry);
    this.watcher.observe(entry.row);
    return entry;
  }

  hear(nodeId) {
    this.heardWhileLoading.add(nodeId);
    this.refresh.add(nodeId);
  }

  async readRows(ids) {
    const { nodes } = await ask(ROWS, { ids });
    this.named(nodes.nodes);
    if (!this.page) return;
    const known = this.rows.size;
    const found = new Map(nodes.nodes.map((node) => [node.id, node]));
    for (const id of ids) {
      const node = found.get(id);
      if (node && this.fits(node)) this.put(node);
      else this.remove(id);
    }
    if (this.page.hasNextPage && this.rows.size !== known) this.recount();
    this.describe();
  }

  /** Whether the filter lets a node in, by the server's own reading of it. */
  fits({ hostname, displayName, identityKey, state }) {
    const text = `${hostname ?? ""} ${displayName ?? ""} ${identityKey}`.toLowerCase();
    return text.includes(this.filter.text.toLowerCase()) && (!this.filter.state || state === this.filter.state);
  }

  put(node) {
    const known = this.rows.get(node.id);
    if (known && known.key === keyOf(node)) {
      this.update(node);
      return;
    }
    if (known) this.remove(node.id);
    const key = keyOf(node);
    let place = this.order.findIndex((entry) => entry.key > key);
    if (place < 0) {
      if (this.page.hasNextPage) return; // it belongs to a page that is not loaded yet
      place = this.order.length;
    }
    const entry = this.entry(node);
    byId("rows").insertBefore(entry.row, this.order[place]?.row ?? null);
    this.order.splice(place, 0, entry);
    flash([...entry.row.cells]);
  }

  update(node) {
    const entry = this.rows.get(node.id);
    const changed = [];
    cellsOf(node).forEach((cell, index) => {
      const shown = entry.row.cells[index];
      if (shown.isEqualNode(cell)) return;
      const telling = shown.dataset.quiet === undefined && shown.textContent !== cell.textContent;
      if (shown.contains(document.activeElement)) {
        // The link keeps the focus; only its text is new.
        shown.querySelector("a").textContent = cell.querySelector("a").textContent;
      } else {
        shown.replaceWith(cell);
      }
      if (telling) changed.push(entry.row.cells[index]);
    });
    // A snapshot that came is told by its time, whose text may still read the same.
    if (entry.node.latestSnapshot?.receivedAt !== node.latestSnapshot?.receivedAt) {
      changed.push(entry.row.querySelector("[data-cell=snapshot]"));
    }
    entry.node = node;
    flash(changed);
  }

  remove(id) {
    const entry = this.rows.get(id);
    if (!entry) return;
    this.watcher.unobserve(entry.row);
    this.visible.delete(id);
    this.rows.delete(id);
    this.order.splice(this.order.indexOf(entry), 1);
    entry.row.remove();
  }

  recount() {
    this.counting ??= setTimeout(async () => {
      this.counting = null;
      const turn = this.loading;
      try {
        const { nodes } = await ask(COUNT, this.variables);
        if (turn !== this.loading) return;
        const unlisted = nodes.totalCount > this.total;
        this.total = nodes.totalCount;
        if (unlisted) await this.readAgain(turn);
      } catch (error) {
        this.refused(error);
        return;
      }
      this.describe();
    }, COUNT_MS);
  }

  /** Read what is loaded again, page by page, and put in what was missing: a node that no event told of. */
  async readAgain(turn) {
    const last = this.order.at(-1)?.key ?? "";
    let after = null;
    do {
      const { nodes } = await ask(NODES, { ...this.variables, after });
      if (turn !== this.loading) return;
      this.named(nodes.nodes);
      for (const node of nodes.nodes) this.put(node);
      after = nodes.pageInfo.hasNextPage && keyOf(nodes.nodes.at(-1)) < last ? nodes.pageInfo.endCursor : null;
    } while (after);
  }

  describe() {
    const shown = this.rows.size;
    this.total = this.page.hasNextPage ? Math.max(this.total, shown) : shown;
    const { total } = this;
    byId("count").textContent = shown === total ? count(total) : `${count(shown)} of ${count(total)}`;
    byId("more").hidden = !this.page.hasNextPage;
    const empty = byId("no-rows");
    empty.hidden = shown > 0;
    empty.textContent = this.filter.text || this.filter.state
      ? "No node fits this filter."
      : "No node has reported yet. A machine joins with: fleetgraph-agent run --server URL --token TOKEN";
  }

  watch(entries) {
    for (const { target, isIntersecting } of entries) {
      // A row that was removed meanwhile may still be told of.
      if (isIntersecting && target.isConnected) {
        this.visible.add(target.dataset.id);
        tickTimes(target);
      } else {
        this.visible.delete(target.dataset.id);
      }
    }
  }

  /** Bring the times on the screen up to date; those of a thousand rows would cost a layout of the whole table. */
  tick() {
    for (const id of this.visible) tickTimes(this.rows.get(id).row);
  }
}

function cellsOf(node) {
  const sections = node.latestSnapshot?.sections;
  const name = nameOf(node);
  const other = node.displayName && node.displayName !== name ? node.displayName : null;
  return [
    cell("node", "Node", h("a", { href: `#/node/${node.id}` }, name), second(other)),
    cell("state", "State", pill(node.state)),
    cell("connectivity", "Connectivity", pill(node.connectivity)),
    cell("gpus", "GPUs", gpus(node, sections?.gpus)),
    cell("driver", "Driver", driver(node, sections?.gpus)),
    cell("kernel", "Kernel, OS", sections?.os?.kernel ?? unknown(), second(sections?.os?.distro?.prettyName)),
    quiet(cell("snapshot", "Snapshot", node.latestSnapshot ? moment(node.latestSnapshot.receivedAt) : none("none yet"))),
    quiet(cell("seen", "Seen", node.lastSeenAt ? moment(node.lastSeenAt) : none("never"))),
  ];
}

const cell = (name, label, ...content) => h("td", { "data-cell": name, "data-label": label }, content);
const quiet = (element) => {
  element.dataset.quiet = "";
  return element;
};
const second = (text) => text && h("span", { class: "second" }, text);
const none = (text) => h("span", { class: "muted" }, text);
const unknown = () => h("span", { class: "unknown" }, "unknown");

function gpus(node, section) {
  if (!section) return unknown();
  const names = new Map(section.gpus.map((gpu) => [gpu.uuid, gpu.name]));
  const products = new Map();
  for (const device of node.devices.nodes) {
    const product = device.gpuProduct ?? names.get(device.id) ?? "GPU of unknown product";
    products.set(product, (products.get(product) ?? 0) + 1);
  }
  const faults = node.devices.nodes.filter((device) => !device.healthy || device.missing).length;
  const complete = section.enumeration === "COMPLETE";
  const lines = [...products].map(([product, times]) => h("span", { class: "line" }, h("b", null, times), ` × ${product}`));
  if (lines.length === 0) lines.push(complete ? none("none") : unknown());
  if (faults) lines.push(h("span", { class: "second bad" }, `${faults} unhealthy`));
  if (!complete) {
    lines.push(h("span", { class: "second warn", title: section.reason }, `enumeration ${word(section.enumeration)}`));
  }
  return lines;
}

function driver(node, section) {
  if (section?.driverVersion) return section.driverVersion;
  return section?.enumeration === "COMPLETE" && node.devices.totalCount === 0 ? none("none") : unknown();
}
