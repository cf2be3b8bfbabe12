// What a node's kernel log told, and what it was told to do.

import { h } from "./dom.js";
import { none, table } from "./facts.js";
import { code, count, moment, pill, word } from "./format.js";

const LASTING = new Set(["QUARANTINE", "QUARANTINE_AND_DRAIN", "NODE_NO_SCHEDULE"]);

export function faultsOf(faults) {
  if (faults.length === 0) return h("p", null, none("none was told"));
  return table(
    "",
    ["Fault", "Where", "Policy", "First", "Last", "Over", "The driver says"],
    faults.map((fault) => [
      [
        h("span", { class: toneOf(fault), "data-fact": `fault.${fault.cause}` }, fault.cause),
        Number(fault.count) > 1 && ` × ${count(Number(fault.count))}`,
        h("span", { class: "second muted" }, fault.meaning),
      ],
      placeOf(fault),
      [word(fault.policy), fault.condition && h("span", { class: "second" }, fault.condition)],
      moment(fault.since),
      moment(fault.lastAt),
      fault.endedAt ? [word(fault.end), " ", moment(fault.endedAt)] : none(fault.condition ? "no" : "told only"),
      fault.message,
    ]),
  );
}

// What is over, or was told only, is no alarm.
function toneOf({ policy, condition, endedAt }) {
  if (endedAt || !condition) return "muted";
  return LASTING.has(policy) ? "bad" : "warn";
}

function placeOf({ deviceId, mig, pci, address }) {
  const place = deviceId ?? pci ?? (address || null);
  return place ? [code(place), mig && h("span", { class: "second" }, mig)] : none("the log does not say");
}

export function commandsOf({ nodes, totalCount }) {
  if (nodes.length === 0) return h("p", null, none("none was given"));
  return [
    table(
      "",
      ["Command", "State", "Why", "Asked for", "Started", "Ended"],
      nodes.map((command) => [
        [command.kind, h("span", { class: "second muted" }, `by ${command.issuedBy}`)],
        h("span", { "data-fact": `command.${command.sequence}` }, pill(command.state)),
        command.reason ? h("span", { title: command.message }, command.reason) : none("none"),
        moment(command.createdAt),
        command.startedAt ? moment(command.startedAt) : none("no"),
        command.finishedAt ? moment(command.finishedAt) : none("no"),
      ]),
    ),
    totalCount > nodes.length && h("p", { class: "muted" }, `The newest ${count(nodes.length)} of ${count(totalCount)}.`),
  ];
}
