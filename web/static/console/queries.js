// The operations of the console, by name. The server reads the same file: with trusted documents, it is one of them.

const file = await fetch(new URL("documents.graphql", import.meta.url));
if (!file.ok) throw new Error(`The server answered with HTTP ${file.status} for ${file.url}.`);
export const DOCUMENT = await file.text();

export const START = "Start";
export const NODES = "Nodes";
export const ROWS = "Rows";
export const COUNT = "Count";
export const STATUS = "Status";
export const NODE = "Node";
export const DIFF = "Diff";
export const RAW = "Raw";
export const EVENTS = "Events";
