// The eight sections, each shown as typed facts.

import { h } from "./dom.js";
import { Facts, factList, none, table, unknown } from "./facts.js";
import { capacity, code, count, mebibytes, memory, onOff, word, yesNo } from "./format.js";

/** Name, title and view of every section, in the order of the page. */
export const SECTIONS = [
  { name: "system", title: "System", view: system },
  { name: "cpu", title: "CPU", view: cpu },
  { name: "memory", title: "Memory", view: memorySection },
  { name: "gpus", title: "GPUs", view: gpus },
  { name: "nics", title: "Network", view: nics },
  { name: "disks", title: "Disks", view: disks },
  { name: "os", title: "Operating system", view: os },
  { name: "images", title: "Images and weights", view: images },
];

/** Show a section's document. */
export function sectionView({ name, view }, document) {
  if (!document) return [h("p", null, none("not reported"))];
  const facts = new Facts(document, `${name}.`);
  return [...view(facts, document), notKnown(document)];
}

function notKnown({ notKnown: list }) {
  if (list.length === 0) return null;
  const items = list.map(({ fact, availability }) => h("li", null, code(fact), " ", unknown(availability)));
  const noun = list.length === 1 ? "1 fact is" : `${count(list.length)} facts are`;
  return h("details", { class: "block" }, h("summary", null, `${noun} not known`), h("ul", { class: "plain" }, items));
}

/** The rows of a list inside the document, with its columns as `[label, path inside the item, format, absent]`. */
function rowsOf(facts, path, columns) {
  return facts.at(path).map((_, index) =>
    columns.map(([, inner, format, absent]) =>
      typeof inner === "function"
        ? inner(`${path}.${index}`)
        : facts.show(`${path}.${index}.${inner}`, format, absent),
    ),
  );
}

function listOf(facts, caption, path, columns, { absent = "none" } = {}) {
  if (facts.at(path) === null) return table(caption, [], [], { empty: facts.show(path, String, absent) });
  const empty = facts.reason(path) ? unknown(facts.reason(path)) : none("none");
  return table(caption, columns.map(([label]) => label), rowsOf(facts, path, columns), { empty });
}

const named = (facts, pairs) =>
  factList(pairs.map(([label, path, format, absent]) => [label, facts.show(path, format, absent)]));
const software = ({ name, version }) => (version ? `${name} ${version}` : `${name}, version unknown`);

function system(facts) {
  return [
    named(facts, [
      ["Vendor", "vendor"],
      ["Product", "product"],
      ["Board", "board"],
      ["Product UUID", "productUuid", code],
      ["System serial", "systemSerial", code],
      ["Board serial", "boardSerial", code],
      ["Chassis serial", "chassisSerial", code],
      ["BIOS vendor", "biosVendor"],
      ["BIOS version", "biosVersion"],
      ["BIOS date", "biosDate"],
      ["BMC version", "bmcVersion"],
      ["Virtualization", "virtualization"],
    ]),
  ];
}

function cpu(facts) {
  return [
    named(facts, [
      ["Model", "model"],
      ["Vendor", "vendor"],
      ["Architecture", "arch"],
      ["Sockets", "sockets", count],
      ["Cores", "cores", count],
      ["Threads", "threads", count],
      ["Isolated CPUs", "isolated", String, "none"],
      ...(facts.at("flags").length ? [] : [["Feature flags", "flags"]]),
    ]),
    listOf(facts, "NUMA nodes", "numaNodes", [
      ["Node", "id"],
      ["CPUs", "cpus", (cpus) => cpus || none("none, memory only")],
    ]),
    facts.at("flags").length > 0 &&
      h(
        "details",
        { class: "block" },
        h("summary", null, `${count(facts.at("flags").length)} feature flags`),
        h("p", { class: "flags" }, facts.show("flags", (flags) => flags.join(" "))),
      ),
  ];
}

function memorySection(facts) {
  return [
    named(facts, [
      ["Total", "totalBytes", memory],
      ["Swap", "swapBytes", memory],
    ]),
    listOf(facts, "NUMA nodes", "numaNodes", [
      ["Node", "id"],
      ["Memory", "totalBytes", memory],
    ]),
    listOf(facts, "Huge pages", "hugePages", [
      ["Page size", "sizeKiB", (size) => memory(String(size * 1024))],
      ["Reserved", "count", count],
    ]),
    listOf(facts, "Modules", "dimms", [
      ["Slot", "locator"],
      ["Size", "sizeBytes", memory],
      ["Type", "type"],
      ["Speed", "speedMTs", (speed) => `${count(speed)} MT/s`],
      ["Part", "partNumber", code],
      ["Serial", "serial", code],
    ]),
  ];
}

function gpus(facts, document) {
  const mode = (path) => [
    facts.show(`${path}.current`, onOff),
    facts.at(`${path}.pending`) !== null &&
      facts.at(`${path}.pending`) !== facts.at(`${path}.current`) &&
      h("span", { class: "warn" }, ` → ${onOff(facts.at(`${path}.pending`))} at reset`),
  ];
  const pair = (path, one, other) => [facts.show(`${path}.${one}`, count), " / ", facts.show(`${path}.${other}`, count)];
  // A whole counter group without a value is one unknown, not one per counter.
  const group = (path, inner) => (facts.at(path) === null ? facts.show(path) : inner);
  const links = (list) => {
    const active = list.filter(({ state }) => state === "active").length;
    const remotes = [...new Set(list.map(({ remote }) => remote).filter(Boolean))];
    return [`${active} of ${list.length} active`, remotes.length > 0 && h("span", { class: "second" }, `to ${remotes.join(", ")}`)];
  };
  const which = ["#", "index"];
  return [
    factList([
      ["Enumeration", facts.show("enumeration", word)],
      ...(document.reason ? [["Reason", facts.show("reason")]] : []),
      ["Driver", facts.show("driverVersion", String, document.gpus.length ? null : "none")],
      ["CUDA of the driver", facts.show("cudaDriverVersion", String, document.gpus.length ? null : "none")],
      ["Kernel module", facts.show("kernelModule", String, document.gpus.length ? null : "none")],
    ]),
    listOf(facts, "Boards", "gpus", [
      which,
      ["Name", "name"],
      ["UUID", "uuid", code],
      ["PCI address", "pciBusId", code],
      ["NUMA", "numaNode"],
      ["Memory", "vramMiB", mebibytes],
      ["Architecture", "architecture"],
      ["Compute", "computeCapability"],
      ["Serial", "serial", code],
      ["Part", "partNumber", code],
      ["VBIOS", "vbios", code],
      ["Virtualization", "virtualization", word, "bare metal"],
      ["Reachable", "lost", (lost) => (lost ? h("b", { class: "bad" }, "lost") : "yes"), "yes"],
    ]),
    document.gpus.length > 0 &&
      listOf(facts, "Modes and health", "gpus", [
        which,
        ["ECC", (at) => group(`${at}.eccMode`, mode(`${at}.eccMode`))],
        ["MIG", (at) => group(`${at}.migMode`, mode(`${at}.migMode`))],
        ["PCIe lanes", (at) => group(`${at}.pcieLinkWidth`, pair(`${at}.pcieLinkWidth`, "current", "max"))],
        ["Remapped corr. / uncorr.", (at) => group(`${at}.health.rowRemap`, pair(`${at}.health.rowRemap`, "correctable", "uncorrectable"))],
        ["Remap pending", "health.rowRemap.pending", yesNo],
        ["Remap failed", "health.rowRemap.failure", yesNo],
        ["Retired SBE / DBE", (at) => group(`${at}.health.retiredPages`, pair(`${at}.health.retiredPages`, "sbe", "dbe"))],
        ["Uncorr. ECC vol. / agg.", (at) => group(`${at}.health.eccUncorrectable`, pair(`${at}.health.eccUncorrectable`, "volatile", "aggregate"))],
      ]),
    document.gpus.length > 0 &&
      listOf(facts, "NVLink and fabric", "gpus", [
        which,
        ["NVLinks", "nvlinks", links],
        ["Fabric state", "fabric.state", word, "no fabric"],
        ["Status", "fabric.status", word, "no fabric"],
        ["Health", "fabric.health", word, "no fabric"],
        ["Issues", "fabric.healthIssues", (issues) => issues.join(", "), "no fabric"],
        ["Cluster", "fabric.clusterUuid", code, "none"],
        ["Clique", "fabric.cliqueId", String, "none"],
      ]),
    migInstances(facts, document),
  ];
}

function migInstances(facts, document) {
  const rows = document.gpus.flatMap((gpu, place) =>
    gpu.migInstances.map((_, index) => {
      const at = `gpus.${place}.migInstances.${index}`;
      return [
        facts.show(`gpus.${place}.index`),
        facts.show(`${at}.gi`),
        facts.show(`${at}.ci`),
        facts.show(`${at}.profile`),
        facts.show(`${at}.memoryMiB`, mebibytes),
        facts.show(`${at}.uuid`, code),
      ];
    }),
  );
  return rows.length > 0 && table("MIG instances", ["GPU", "GI", "CI", "Profile", "Memory", "UUID"], rows);
}

function nics(facts, document) {
  const rdma = document.nics.flatMap((nic, place) =>
    (nic.rdma?.ports ?? []).map((_, index) => {
      const at = `nics.${place}.rdma`;
      return [
        nic.name,
        facts.show(`${at}.device`),
        facts.show(`${at}.nodeGuid`, code),
        facts.show(`${at}.ports.${index}.port`),
        facts.show(`${at}.ports.${index}.guid`, code),
        facts.show(`${at}.ports.${index}.linkLayer`),
        facts.show(`${at}.ports.${index}.rateGbps`, (rate) => `${count(rate)} Gbit/s`),
      ];
    }),
  );
  const vfs = document.nics.flatMap((nic, place) =>
    nic.vfs.map((_, index) => {
      const at = `nics.${place}.vfs.${index}`;
      return [nic.name, facts.show(`${at}.index`), facts.show(`${at}.mac`, code), facts.show(`${at}.pciBusId`, code)];
    }),
  );
  return [
    listOf(facts, "Interfaces", "nics", [
      ["Name", "name"],
      ["Kind", "kind", word],
      ["Permanent MAC", "permanentMac", code],
      ["Present MAC", "mac", code],
      ["PCI address", "pciBusId", code, "not on PCI"],
      ["NUMA", "numaNode"],
      ["Driver", "driver"],
      ["Firmware", "firmware"],
      ["Removable", "removable", yesNo],
    ]),
    rdma.length > 0 && table("RDMA ports", ["Interface", "Device", "Node GUID", "Port", "Port GUID", "Link layer", "Rate"], rdma),
    vfs.length > 0 && table("Virtual functions", ["Interface", "VF", "MAC", "PCI address"], vfs),
    listOf(facts, "Attached fabrics", "fabrics", [
      ["Name", "name"],
      ["Adapters", "adapters", (adapters) => adapters.join(", ")],
      ["Rate", "rateGbps", (rate) => `${count(rate)} Gbit/s`],
    ]),
  ];
}

function disks(facts) {
  return [
    listOf(facts, "Disks", "disks", [
      ["Name", "name"],
      ["Model", "model"],
      ["Size", "sizeBytes", capacity],
      ["Transport", "transport"],
      ["Kind", "rotational", (rotational) => (rotational ? "rotational" : "solid state")],
      ["Serial", "serial", code],
      ["WWN", "wwn", code],
      ["Namespace", "namespace", String, "none"],
      ["PCI address", "pciBusId", code, "not on PCI"],
    ]),
    listOf(facts, "Filesystems", "filesystems", [
      ["Mount", "mount", code],
      ["Type", "type"],
      ["Size", "totalBytes", capacity],
      ["Shared", "shared", yesNo],
    ]),
  ];
}

function os(facts) {
  return [
    named(facts, [
      ["Distribution", "distro.prettyName"],
      ["Version", "distro.version", String, "rolling"],
      ["Kernel", "kernel"],
      ["Architecture", "arch"],
      ["KVM available", "kvmAvailable", yesNo],
      ["Container runtimes", "containerRuntimes", (list) => list.map(software).join(", ")],
      ["Inference engines", "engines", (list) => list.map(software).join(", "), "not asked"],
      ["Fabric manager", "fabricManager", software, "none"],
      ["IMEX", "imex.version", String, "none"],
      ["IMEX nodes", "imex.nodes", (nodes) => nodes.join(", "), "none"],
    ]),
  ];
}

function images(facts) {
  return [
    listOf(facts, "Cached images", "images", [
      ["Reference", "reference", code],
      ["Size", "sizeBytes", capacity],
      ["Digest", "digest", code],
    ]),
    listOf(
      facts,
      "Model weights",
      "weights",
      [
        ["Path", "path", code],
        ["Size", "sizeBytes", capacity],
        ["Shared", "shared", yesNo],
      ],
      { absent: "not asked" },
    ),
  ];
}
