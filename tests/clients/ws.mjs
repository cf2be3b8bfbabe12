// npm's graphql-ws, told what to do line by line; says line by line what it sees.
import { createInterface } from "node:readline";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

const [address, token, query, after] = process.argv.slice(2);
const say = (what) => console.log(JSON.stringify(what));

const client = createClient({
  url: address.replace("http", "ws") + "/graphql",
  webSocketImpl: WebSocket,
  connectionParams: { authorization: `Bearer ${token}` },
  retryAttempts: 3,
  retryWait: () => new Promise((resolve) => setTimeout(resolve, 100)),
  on: { closed: ({ code, reason }) => say({ closed: code, reason: String(reason) }) },
});

// The client sends this object again whenever it connects anew.
const payload = { query, variables: { after } };
let unsubscribe;
const orders = {
  subscribe: () => {
    unsubscribe = client.subscribe(payload, {
      next: ({ data, errors }) => {
        if (errors) return say({ errors });
        payload.variables.after = data.events.cursor;
        say({ n: data.events.payload.n });
      },
      error: (error) => say({ error: error.code ?? String(error) }),
      complete: () => say({ complete: true }),
    });
  },
  unsubscribe: () => unsubscribe(),
  // Reads nothing and answers nothing, like a program that computes or a laptop whose lid is shut.
  sleep: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000),
};
createInterface({ input: process.stdin }).on("line", (order) => orders[order]());
