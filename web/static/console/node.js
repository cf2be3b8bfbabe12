// The page of one node.

import { ApiError, ask } from "./api.js";
import { byId, flash, h, replaceMarked } from "./dom.js";
import { Facts, factList, none, table, unknown } from "./facts.js";
import { capacity, changeName, code, compact, count, gibibytes, moment, pill, shortHash, word, yesNo } from "./format.js";
import { commandsOf, faultsOf } from "./health.js";
import { nameOf } from "./list.js";
import { DIFF, NODE, STATUS } from "./queries.js";
import { rawButtons } from "./raw.js";
import { Refresh } from "./refresh.js";
import { SECTIONS, sectionView } from "./sections.js";

const STATUS_MS = 10_000;
const PARTS = [
  { name: "conditions", title: "Conditions" },
  { name: "faults", title: "Faults" },
  { name: "commands", title: "Commands" },
  { name: "devices", title: "Devices" },
  { name: "changes", title: "Latest change" },
  ...SECTIONS,
  { name: "history", title: "History" },
];

/** One node, followed while it is shown; `refused(error)` hears what the server refuses. */
export class NodePage {
  constructor({ refused, named }) {
    this.refused = refused;
    this.named = named;
    this.id = null;
    this.signatures = new Map();
    this.shown = new Map();
    this.refresh = new Refresh(() => this.load(), (error) => this.fail(error));
    setInterval(() => {
      if (this.id && this.node && !document.hidden) this.loadStatus();
    }, STATUS_MS);
  }

  show(id, part) {
    if (id !== this.id) {
      this.leave();
      this.id = id;
      this.part = part;
      byId("node").replaceChildren(h("p", { class: "empty" }, "Loading"));
      this.refresh.now(id);
    } else {
      this.scrollTo(part);
    }
  }

  leave() {
    this.id = this.node = null;
    this.signatures.clear();
    this.shown.clear();
    this.refresh.clear();
    byId("node").replaceChildren();
  }

  hear(nodeId) {
    if (nodeId === this.id) this.refresh.add(nodeId);
  }

  async load() {
    const id = this.id;
    if (!id) return;
    const { computeNode } = await ask(NODE, { id });
    if (id !== this.id) return;
    const first = !this.node;
    this.node = computeNode;
    this.named([computeNode]);
    if (first) this.build();
    this.fill();
    if (first) this.scrollTo(this.part);
  }

  async loadStatus() {
    const id = this.id;
    try {
      const { computeNode } = await ask(STATUS, { id });
      if (id !== this.id) return;
      this.node = { ...this.node, ...computeNode };
      this.fill();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code !== "UNREACHABLE") this.refused(error);
    }
  }

  fail(error) {
    if (error.code === "NOT_FOUND" || error.code === "INVALID_INPUT") {
      byId("node").replaceChildren(
        h("p", { class: "empty" }, "There is no such node. ", h("a", { href: "#/" }, "Back to the list")),
      );
    } else {
      this.refused(error);
    }
  }

  scrollTo(part) {
    const target = part ? byId(`part-${part}`) : null;
    if (target) target.scrollIntoView();
    else scrollTo(0, 0);
  }

  build() {
    byId("node").replaceChildren(
      h("header", { class: "node-head" }, h("div", { id: "node-title" }), h("div", { id: "node-status", class: "card body" })),
      h(
        "nav",
        { class: "parts", "aria-label": "Parts of this page" },
        PARTS.map(({ name, title }) => h("a", { href: `#/node/${this.id}/${name}` }, title)),
      ),
      ...PARTS.map(({ name, title, view }) =>
        h(
          "section",
          { id: `part-${name}`, class: "card", "aria-labelledby": `title-${name}` },
          h(
            "header",
            null,
            h("h2", { id: `title-${name}` }, title),
            h("span", { id: `note-${name}`, class: "note muted" }),
            view && rawButtons(name, title, () => this.node.latestSnapshot?.id),
          ),
          h("div", { id: `body-${name}`, class: "body" }),
        ),
      ),
    );
  }

  /** Bring every block up to date; one whose data is the same is left alone, with its focus and open details. */
  fill() {
    const { node } = this;
    const { latestSnapshot: snapshot, devices, snapshots, conditions, faults, commands, inventoryStatus: inventory } = node;
    document.title = `${nameOf(node)} · Fleetgraph`;
    this.block("node-title", [nameOf(node), node.displayName, node.state, node.connectivity], () => titleOf(node));
    this.block("node-status", [statusKey(node), inventory], () => statusOf(node, inventory));
    this.block("body-conditions", conditions, () => conditionsOf(conditions));
    this.note("conditions", conditions.length);
    this.block("body-faults", faults, () => faultsOf(faults));
    this.note("faults", faults.length);
    this.block("body-commands", commands, () => commandsOf(commands));
    this.note("commands", commands.totalCount);
    this.block("body-devices", devices, () => devicesOf(devices));
    this.note("devices", devices.totalCount);
    this.block("body-changes", snapshot?.diff, () => diffOf(snapshot?.diff));
    for (const section of SECTIONS) {
      const hash = snapshot?.sections[`sha256Of_${section.name}`];
      const changed = this.block(`body-${section.name}`, hash ?? null, () =>
        sectionView(section, snapshot?.sections[section.name]),
      );
      if (changed) byId(`note-${section.name}`).replaceChildren(...(hash ? ["sha256 ", shortHash(hash)] : []));
      for (const button of byId(`part-${section.name}`).querySelectorAll("header button")) button.disabled = !hash;
    }
    this.block("body-history", snapshots, () => historyOf(snapshots, this.shown));
    this.note("history", snapshots.totalCount);
  }

  note(name, amount) {
    byId(`note-${name}`).textContent = amount ? count(amount) : "";
  }

  block(id, data, content) {
    const signature = JSON.stringify(data ?? null);
    if (this.signatures.get(id) === signature) return false;
    const known = this.signatures.has(id);
    this.signatures.set(id, signature);
    const element = byId(id);
    replaceMarked(element, content(), { mark: known });
    const card = element.closest("section");
    if (known && card) flash([card]);
    return true;
  }
}

function titleOf(node) {
  const other = node.displayName && node.displayName !== nameOf(node) ? node.displayName : null;
  return [
    h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Nodes"), " /"),
    h("h1", null, nameOf(node), other && h("span", { class: "second" }, other)),
    h("span", { class: "axis" }, "State", pill(node.state)),
    h("span", { class: "axis" }, "Connectivity", pill(node.connectivity)),
  ];
}

// What the status block shows of the node itself.
const statusKey = ({ conditions, faults, commands, inventoryStatus, devices, snapshots, latestSnapshot, ...own }) => own;

function statusOf(node, inventory) {
  const flags = ["maintenance", "cordoned", "draining"].filter((flag) => node[flag]);
  const facts = new Facts({ ...node, notKnown: [] }, "node.");
  const show = (path, format, absent) => facts.show(path, format, absent);
  return [
    factList([
      ["Provisioning", show("provisionState", word)],
      ["Power", show("power", (power) => (power === "UNKNOWN" ? unknown(null) : word(power)))],
      ["Role", show("role", word)],
      ["Trust", show("trust", word)],
      ["Set by operators", flags.length ? flags.join(", ") : none("nothing")],
      ["Keeps work away", show("noScheduleReasons", (reasons) => h("b", { class: "warn" }, reasons.join(", ")))],
      ["Last seen", node.lastSeenAt ? moment(node.lastSeenAt) : none("never")],
      ["Generation, observed", `${count(node.generation)}, ${count(node.observedGeneration)}`],
      ["Site", show("site", ({ name }) => name, "none")],
      ["Pool", show("pool", (pool) => `${pool.name} (${word(pool.class)})`, "none")],
      ["Management", show("managementAddress", code, "none given")],
      ["Agent", show("agentVersion", (version) => [version, node.protocol && ` (protocol ${node.protocol})`])],
      ["Features", show("features", (features) => features.join(", "))],
      ["Identity key", show("identityKey", code)],
      ["Node id", show("id", code)],
      ["Tenant", show("tenantId", code)],
      ["Boot", show("bootId", code)],
    ]),
    inventoryOf(inventory),
  ];
}

function inventoryOf(inventory) {
  return h(
    "div",
    { class: "inventory", "data-state": inventory.state },
    h("h3", null, "Inventory ", h("span", { "data-fact": "inventory.state" }, pill(inventory.state))),
    inventory.error &&
      h("p", { class: "problem" }, inventory.error, inventory.failedAt && [" (", moment(inventory.failedAt), ")"]),
    inventory.state === "FAILED" && h("p", { class: "muted" }, "What is shown below is the last good inventory."),
    inventory.missingSections.length > 0 && h("p", null, `Waiting for sections: ${inventory.missingSections.join(", ")}`),
    factList([
      ["Reported", inventory.reportedAt ? moment(inventory.reportedAt) : none("never")],
      ["Applied", inventory.appliedAt ? moment(inventory.appliedAt) : none("never")],
      ["Digest applied", inventory.appliedDigest ? shortHash(inventory.appliedDigest) : none("none")],
      ["Digest reported", inventory.reportedDigest ? shortHash(inventory.reportedDigest) : none("none")],
    ]),
  );
}

function conditionsOf(conditions) {
  const tone = ({ status, noSchedule }) => (status === "TRUE" ? (noSchedule ? "bad" : "warn") : "muted");
  if (conditions.length === 0) return h("p", null, none("none"));
  return table(
    "",
    ["Condition", "Holds", "Since", "Reason", "Message", "Keeps work away"],
    conditions.map((condition) => [
      condition.type,
      h("span", { class: tone(condition), "data-fact": `condition.${condition.type}` }, word(condition.status)),
      moment(condition.since),
      condition.reason ?? none("none"),
      condition.message ?? none("none"),
      yesNo(condition.noSchedule),
    ]),
  );
}

function devicesOf({ nodes, totalCount }) {
  if (nodes.length === 0) return h("p", null, none("none"));
  const order = ["NODE", "GPU", "GPU_MIG", "GPU_SLOT", "NIC", "NIC_VF", "DISK"];
  const sorted = [...nodes].sort(
    (one, other) =>
      order.indexOf(one.class) - order.indexOf(other.class) ||
      (one.index ?? Infinity) - (other.index ?? Infinity) ||
      (one.id < other.id ? -1 : 1),
  );
  return [
    table("", ["Class", "Id", "Product", "Healthy", "Bookable", "Memory or size", "PCI address", "NUMA"], sorted.map(deviceCells), {
      key: (index) => sorted[index].id,
    }),
    totalCount > nodes.length && h("p", { class: "muted" }, `The first ${count(nodes.length)} of ${count(totalCount)}.`),
  ];
}

function deviceCells(device) {
  const facts = new Facts(device, `device.${device.id}.`);
  const isGpu = device.class.startsWith("GPU");
  const product = device.gpuProduct ? "gpuProduct" : isGpu ? "attributes.name" : device.class === "DISK" ? "attributes.model" : "attributes.driver";
  return [
    word(device.class).replace("-", "."),
    h("code", { class: "id" }, device.id),
    facts.show(product),
    [
      facts.show("healthy", (healthy) => (healthy ? "yes" : h("b", { class: "bad" }, "no"))),
      device.missing && h("span", { class: "second bad" }, "missing"),
      ...device.health.map(({ reason, message }) => h("span", { class: "second bad", title: message }, reason)),
    ],
    [
      facts.show("bookable", yesNo),
      device.partitionPending && h("span", { class: "second warn" }, "partition pending"),
    ],
    size(device, facts, isGpu),
    facts.show("pciBusId", code, isGpu ? null : "not on PCI"),
    facts.show("numaNode"),
  ];
}

function size(device, facts, isGpu) {
  if (isGpu) return facts.show("vramGiB", gibibytes);
  if (device.class === "DISK") return facts.show("attributes.sizeBytes", capacity);
  return none("not applicable");
}

function diffOf(diff) {
  if (!diff) return h("p", null, none("no inventory yet"));
  if (!diff.from) return h("p", null, none("This is the node's first snapshot."));
  return [
    h("p", { class: "muted" }, "From ", moment(diff.from.receivedAt), " to ", moment(diff.to.receivedAt), " ", code(diff.to.id)),
    diff.changes.length === 0
      ? h("p", null, "Facts changed that are no change of hardware, driver, firmware or kernel.")
      : table(
          "",
          ["Change", "Device", "Before", "After"],
          diff.changes.map(({ type, deviceId, before, after }) => [
            changeName(type),
            deviceId ? code(deviceId) : none("the node"),
            h("span", { class: "before" }, compact(before)),
            h("span", { class: "after" }, compact(after)),
          ]),
        ),
  ];
}

function historyOf({ nodes, totalCount }, shown) {
  if (nodes.length === 0) return h("p", null, none("no snapshot yet"));
  return [
    table(
      "",
      ["Received", "Snapshot", "Digest", "Trust", "Changes"],
      nodes.map((snapshot) => [
        moment(snapshot.receivedAt),
        code(snapshot.id),
        shortHash(snapshot.digest),
        snapshot.advisory ? "advisory" : "platform",
        changesOf(snapshot.id, shown),
      ]),
    ),
    totalCount > nodes.length && h("p", { class: "muted" }, `The newest ${count(nodes.length)} of ${count(totalCount)}.`),
  ];
}

/** A snapshot's differences from the one before, read when they are asked for; once shown they stay. */
function changesOf(id, shown) {
  if (shown.has(id)) return shown.get(id);
  const place = h("div", null, h("button", { type: "button", click: () => show() }, "Show"));
  shown.set(id, place);
  async function show() {
    try {
      place.replaceChildren(...[diffOf((await ask(DIFF, { id })).snapshot.diff)].flat());
    } catch (error) {
      place.replaceChildren(h("span", { class: "problem" }, error.message));
    }
  }
  return place;
}
