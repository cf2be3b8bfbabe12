// Queries over HTTP.

import { DOCUMENT } from "./queries.js";
import { storedToken } from "./session.js";

/** What went wrong, with the code of `extensions.code`, or UNREACHABLE when no answer came. */
export class ApiError extends Error {
  constructor(message, code, requestId = null) {
    super(message);
    this.code = code;
    this.requestId = requestId;
  }
}

export const errorOf = (error) => new ApiError(error.message, error.extensions?.code, error.extensions?.requestId);

const ANSWER_MS_MAX = 30_000;

// The newest place in the feed that was heard of. Whatever answers has seen it: a node that an event spoke of is not
// read from a replica that does not know of it yet.
let heard = null;

/** Remember a cursor of the feed: what is asked from now on is read from a state that has seen it. */
export function hear(cursor) {
  heard = cursor;
}

/** Return the data of one of the operations of `queries.js`; raises ApiError. */
export async function ask(operationName, variables = {}, token = storedToken()) {
  let response;
  try {
    response = await fetch("/graphql", {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Authorization: `Bearer ${token}`,
        ...(heard && { "Fleetgraph-After": heard }),
      },
      body: JSON.stringify({ query: DOCUMENT, operationName, variables }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  } catch (cause) {
    // A header cannot carry every character: such a token is no token of any server.
    if (cause instanceof TypeError && !isSendable(token)) throw new ApiError("unknown token", "UNAUTHENTICATED");
    throw new ApiError("The server does not answer.", "UNREACHABLE");
  }
  const answer = await response.json().catch(() => null);
  if (answer?.errors?.length) throw errorOf(answer.errors[0]);
  if (!answer?.data) throw new ApiError(`The server answered with HTTP ${response.status}.`, "UNREACHABLE");
  return answer.data;
}

const isSendable = (token) => /^[\x21-\x7e]+$/.test(token ?? "");
