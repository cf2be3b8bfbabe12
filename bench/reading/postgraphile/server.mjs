// The peer: PostGraphile on the bench's tables, one process, as its documentation sets it up for production.
import { createServer } from "node:http";
import { PgAggregatesPreset } from "@graphile/pg-aggregates";
import { postgraphile } from "postgraphile";
import { makePgService } from "postgraphile/adaptors/pg";
import { grafserv } from "postgraphile/grafserv/node";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import { jsonPgSmartTags } from "postgraphile/utils";
import { PostGraphileConnectionFilterPreset } from "postgraphile-plugin-connection-filter";

const { DATABASE_URL: connectionString, POOL_SIZE, PORT } = process.env;
// `Node` is Relay's and `…Condition` PostGraphile's own; columns without an index of their own are not filtered by
// unless asked for.
const filterable = { tags: { behavior: "+filterBy" } };
const names = jsonPgSmartTags({
  version: 1,
  config: {
    class: {
      nodes: {
        tags: { name: "machines" },
        attribute: { provision_state: filterable, labels: filterable },
      },
      devices: { attribute: { gpu_model: { tags: { behavior: "+groupBy +orderBy" } } } },
      node_conditions: { tags: { name: "machine_states" } },
    },
  },
});
const preset = {
  extends: [PostGraphileAmberPreset, PostGraphileConnectionFilterPreset, PgAggregatesPreset],
  plugins: [names],
  pgServices: [
    makePgService({
      connectionString,
      schemas: ["public"],
      poolConfig: { max: Number(POOL_SIZE), min: Number(POOL_SIZE), idleTimeoutMillis: 0 },
    }),
  ],
  schema: { defaultBehavior: "+list +connection" },
  grafserv: { graphqlPath: "/graphql", graphiql: false, websockets: false },
  grafast: { explain: false },
};
const server = createServer();
server.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
await postgraphile(preset).createServ(grafserv).addTo(server);
server.listen(Number(PORT), "127.0.0.1");
