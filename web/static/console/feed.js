// The live feed over graphql-transport-ws: every event once, in order, over reconnects.

import { errorOf, hear } from "./api.js";
import { DOCUMENT, EVENTS } from "./queries.js";

const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 15_000;
const PING_MS = 15_000;
const SILENCE_MS_MAX = 10_000;
// A connection that lasted this long was a good one: the next loss is retried at once.
const SETTLED_MS = 5_000;
const REJECTED = new Set([4401, 4403]);

/**
 * Follows `events` behind a cursor. Calls `onEvent(event)`, `onStatus("connecting" | "live" | "waiting", seconds)`,
 * `onExpired()` when the log no longer reaches back to the cursor and `onRejected()` when the token is refused; after
 * either of those two it has stopped.
 */
export class Feed {
  constructor(token, handlers) {
    this.token = token;
    this.handlers = handlers;
    this.cursor = null;
    this.failures = 0;
    this.timers = new Set();
    this.socket = null;
    this.retryNow = () => this.retry && this.connect();
  }

  start(cursor) {
    this.cursor = cursor;
    hear(cursor);
    addEventListener("online", this.retryNow);
    this.connect();
  }

  stop() {
    removeEventListener("online", this.retryNow);
    this.clear();
    this.drop();
  }

  connect() {
    this.clear();
    this.drop();
    this.handlers.onStatus("connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/graphql`, "graphql-transport-ws");
    this.socket = socket;
    socket.onopen = () => this.send({ type: "connection_init", payload: { authorization: `Bearer ${this.token}` } });
    socket.onmessage = ({ data }) => socket === this.socket && this.receive(JSON.parse(data));
    socket.onclose = ({ code }) => socket === this.socket && this.closed(code);
    this.expectAnswer();
  }

  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  receive(message) {
    this.heard();
    switch (message.type) {
      case "connection_ack":
        this.send({
          id: "feed",
          type: "subscribe",
          payload: { query: DOCUMENT, operationName: EVENTS, variables: { after: this.cursor } },
        });
        this.after(SETTLED_MS, () => (this.failures = 0));
        this.handlers.onStatus("live");
        break;
      case "ping":
        this.send({ type: "pong" });
        break;
      case "next":
        if (message.payload.errors?.length) this.refused(message.payload.errors[0]);
        else this.deliver(message.payload.data.events);
        break;
      case "error":
        this.refused(message.payload[0]);
        break;
      case "complete":
        this.closed(1000);
        break;
    }
  }

  deliver(event) {
    this.cursor = event.cursor;
    hear(event.cursor);
    this.handlers.onEvent(event);
  }

  refused(error) {
    const { code } = errorOf(error);
    if (code === "CURSOR_EXPIRED") {
      this.stop();
      this.handlers.onExpired();
    } else if (code === "UNAUTHENTICATED" || code === "FORBIDDEN") {
      this.stop();
      this.handlers.onRejected();
    } else {
      this.closed(1011);
    }
  }

  closed(code) {
    this.clear();
    this.drop();
    if (REJECTED.has(code)) {
      this.stop();
      this.handlers.onRejected();
      return;
    }
    const longest = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** this.failures++);
    // Half of the wait is chance, so that consoles do not come back all at once.
    const wait = longest / 2 + (Math.random() * longest) / 2;
    this.handlers.onStatus("waiting", Math.max(1, Math.round(wait / 1000)));
    this.retry = this.after(wait, () => this.connect());
  }

  /** A connection that says nothing within the deadline is dead, whatever the socket believes. */
  expectAnswer() {
    this.silence ??= this.after(SILENCE_MS_MAX, () => this.closed(1006));
  }

  heard() {
    this.cancel("silence");
    this.cancel("ping");
    this.ping = this.after(PING_MS, () => {
      this.send({ type: "ping" });
      this.expectAnswer();
    });
  }

  after(milliseconds, act) {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, milliseconds);
    this.timers.add(timer);
    return timer;
  }

  cancel(name) {
    clearTimeout(this[name]);
    this.timers.delete(this[name]);
    this[name] = null;
  }

  clear() {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    this.silence = this.ping = this.retry = null;
  }

  drop() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }
}
