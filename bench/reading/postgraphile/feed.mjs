// The peer of bench/feed.py: a subscription on a channel of PostgreSQL, as PostGraphile's documentation has it.
import { createServer } from "node:http";
import { jsonParse } from "postgraphile/@dataplan/json";
import { makePgService } from "postgraphile/adaptors/pg";
import { context, listen } from "postgraphile/grafast";
import { grafserv } from "postgraphile/grafserv/node";
import { postgraphile } from "postgraphile";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import { extendSchema, gql } from "postgraphile/utils";

const { CHANNEL, DATABASE_URL: connectionString, POOL_SIZE, PORT } = process.env;
const fields = ["id", "cursor", "type", "at", "nodeId", "condition", "status", "reason"];
const subscription = extendSchema(() => ({
  typeDefs: gql`
    type BenchEvent {
      id: ID!
      cursor: String!
      type: String!
      at: String!
      nodeId: String
      condition: String!
      status: String!
      reason: String!
    }
    extend type Subscription {
      event: BenchEvent
    }
  `,
  objects: {
    Subscription: {
      plans: {
        event: {
          subscribePlan: () => listen(context().get("pgSubscriber"), CHANNEL, jsonParse),
          plan: ($event) => $event,
        },
      },
    },
    BenchEvent: {
      plans: Object.fromEntries(fields.map((field) => [field, ($event) => $event.get(field.replace("I", "_i"))])),
    },
  },
}));
const preset = {
  extends: [PostGraphileAmberPreset],
  plugins: [subscription],
  pgServices: [
    makePgService({
      connectionString,
      schemas: ["peer"],
      poolConfig: { max: Number(POOL_SIZE), min: Number(POOL_SIZE), idleTimeoutMillis: 0 },
      pubsub: true,
    }),
  ],
  grafserv: { graphqlPath: "/graphql", graphiql: false, websockets: true },
  grafast: { explain: false },
};
const server = createServer();
server.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
await postgraphile(preset).createServ(grafserv).addTo(server);
server.listen(Number(PORT), "127.0.0.1");
