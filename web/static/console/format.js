// From values to what people read.

import { h } from "./dom.js";

const number = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL = ["B", "kB", "MB", "GB", "TB", "PB"];

export const count = (value) => number.format(value);
export const yesNo = (value) => (value ? "yes" : "no");
export const onOff = (value) => (value ? "on" : "off");

/** Enumeration values as words: TENANT_OWNED reads "tenant-owned". */
export const word = (value) => value.toLowerCase().replaceAll("_", "-");

function scaled(value, step, units) {
  let amount = Number(value);
  let unit = 0;
  while (amount >= step && unit < units.length - 1) {
    amount /= step;
    unit += 1;
  }
  // 64-bit amounts travel as strings; the title keeps every digit.
  return h("span", { title: `${number.format(BigInt(value))} bytes` }, `${short.format(amount)} ${units[unit]}`);
}

/** Memory, in binary units. */
export const memory = (bytes) => scaled(bytes, 1024, BINARY);
/** Capacity of disks and images, in decimal units as their makers count. */
export const capacity = (bytes) => scaled(bytes, 1000, DECIMAL);
export const mebibytes = (value) => memory(String(BigInt(value) * 1048576n));
export const gibibytes = (value) => `${short.format(value)} GiB`;

export const code = (text) => h("code", null, text);
export const shortHash = (hash) => h("code", { title: hash }, hash.replace(/([0-9a-f]{12})[0-9a-f]{52}$/, "$1"));

/** A moment as its distance from now, kept up to date by `tickTimes`; the title says it in full. */
export function moment(iso) {
  const element = h("time", { datetime: iso, title: new Date(iso).toLocaleString(undefined, { timeZoneName: "short" }) });
  element.textContent = distance(iso);
  return element;
}

export const clock = (iso) => new Date(iso).toLocaleTimeString(undefined, { hour12: false });

function distance(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (seconds < 5) return "now";
  if (seconds < 90) return `${Math.floor(seconds)} s ago`;
  if (seconds < 90 * 60) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 36 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

/** Bring the distances inside an element up to date. */
export function tickTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const text = distance(element.dateTime);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Any JSON value in one line, as `before` and `after` of a change show it. */
export function compact(value) {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return value.length ? value.map(compact).join(", ") : "none";
  if (typeof value === "object") {
    return Object.entries(value).map(([name, inner]) => `${name} ${compact(inner)}`).join(" · ") || "nothing";
  }
  return String(value);
}

/** JSON text with line breaks and indents; works on the text, so that no number loses a digit. */
export function indented(text) {
  let out = "";
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g)) {
    if (token === "{" || token === "[") out += `${token}\n${"  ".repeat(++depth)}`;
    else if (token === "}" || token === "]") out += `\n${"  ".repeat(--depth)}${token}`;
    else if (token === ",") out += `,\n${"  ".repeat(depth)}`;
    else out += token === ":" ? ": " : token;
  }
  return out.replace(/([{[])\s*\n\s*([}\]])/g, "$1$2");
}

const TONES = {
  READY: "good", CONNECTED: "good", APPLIED: "good", SUCCEEDED: "good",
  PROVISIONING: "info", PENDING: "info", ADVISORY: "info", ACKNOWLEDGED: "info", RUNNING: "info",
  MAINTENANCE: "warn", DRAINING: "warn", CORDONED: "warn", DISCONNECTED: "warn", UNREACHABLE: "bad",
  LOST: "bad", FAILED: "bad", EXPIRED: "bad",
};

/** A state as a word with a dot; the dot's tone repeats what the word says. */
export const pill = (value) => h("span", { class: "pill", "data-tone": TONES[value] ?? "idle" }, word(value));

const ABBREVIATIONS = new Set(["gpu", "mig", "nic", "cpu"]);

/** The type of a change in words: GPU_MISSING reads "GPU missing". */
export function changeName(type) {
  const [noun, ...rest] = word(type).split("-");
  return [ABBREVIATIONS.has(noun) ? noun.toUpperCase() : noun[0].toUpperCase() + noun.slice(1), ...rest].join(" ");
}
