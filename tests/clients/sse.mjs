// npm's graphql-sse, told what to do line by line; says line by line what it sees.
import { createInterface } from "node:readline";
import { createClient } from "graphql-sse";

const [address, token, query, after] = process.argv.slice(2);
const say = (what) => console.log(JSON.stringify(what));

const client = createClient({
  url: address + "/graphql",
  headers: { authorization: `Bearer ${token}` },
  retryAttempts: 3,
  retry: () => new Promise((resolve) => setTimeout(resolve, 100)),
});

// The client sends this object again whenever it connects anew.
const request = { query, variables: { after } };
let unsubscribe;
const orders = {
  subscribe: () => {
    unsubscribe = client.subscribe(request, {
      next: ({ data, errors }) => {
        if (errors) return say({ errors: errors.map((each) => each.extensions.code) });
        request.variables.after = data.events.cursor;
        say({ n: data.events.payload.n });
      },
      error: (error) => say({ error: String(error) }),
      complete: () => say({ complete: true }),
    });
  },
  unsubscribe: () => unsubscribe(),
};
createInterface({ input: process.stdin }).on("line", (order) => orders[order]());
