// GraphiQL with the console's token: queries over HTTP, subscriptions over graphql-transport-ws.

import { ask } from "./console/api.js";
import { START } from "./console/queries.js";
import { storedToken, storeToken } from "./console/session.js";

const { React, ReactDOM, GraphiQL, graphqlWs } = window;
const SAMPLE = `# Nodes with their GPUs. Ctrl-Enter runs the operation, Ctrl-Space completes.
query Fleet {
  feedCursor
  nodes(first: 10, orderBy: HOSTNAME) {
    totalCount
    nodes {
      hostname
      state
      devices(class: GPU) { totalCount nodes { id gpuProduct healthy } }
    }
  }
}

# Every event once, in order; with after: "<feedCursor>" from where the query stood.
subscription Feed {
  events { type at node { hostname } }
}
`;

const tokenBox = document.getElementById("token");
const tokenState = document.getElementById("token-state");
const root = ReactDOM.createRoot(document.getElementById("graphiql"));
const authorization = () => (storedToken() ? `Bearer ${storedToken()}` : "");
let socket = null;

function open() {
  socket?.terminate();
  socket = graphqlWs.createClient({
    url: `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/graphql`,
    lazy: true,
    connectionParams: () => ({ authorization: authorization() }),
  });
  const fetcher = GraphiQL.createFetcher({
    url: "/graphql",
    wsClient: socket,
    // What the headers editor says goes before the token of the box.
    fetch: (url, options) =>
      fetch(url, { ...options, headers: { ...(authorization() && { Authorization: authorization() }), ...options.headers } }),
  });
  // The key makes another token a new start: its schema and results are its own.
  root.render(React.createElement(GraphiQL, { key: storedToken(), fetcher, defaultQuery: SAMPLE }));
}

async function sayWho() {
  if (!storedToken()) {
    tokenState.textContent = "No token yet";
    return;
  }
  try {
    tokenState.textContent = (await ask(START)).viewer.name;
  } catch (error) {
    tokenState.textContent = error.message;
  }
}

document.getElementById("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  storeToken(tokenBox.value.trim());
  tokenBox.value = "";
  open();
  sayWho();
});
open();
sayWho();
