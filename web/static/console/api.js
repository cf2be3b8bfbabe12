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

/** Return the data of one of the operations of `queries.js`; raises ApiError. */
export async function ask(operationName, variables = {}, token = storedToken()) {
  let response;
  try {
    response = await fetch("/graphql", {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
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
