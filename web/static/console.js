// The console: signing in, finding the view, handing what the feed brings to the views.

import { ApiError, ask } from "./console/api.js";
import { byId } from "./console/dom.js";
import { EventPanel } from "./console/events.js";
import { Feed } from "./console/feed.js";
import { tickTimes } from "./console/format.js";
import { NodeList, nameOf } from "./console/list.js";
import { NodePage } from "./console/node.js";
import { START } from "./console/queries.js";
import { forgetToken, storedToken, storeToken, takeTokenOfAddress } from "./console/session.js";

const TICK_MS = 1000;
const RETRY_MS = 3000;
const NOTICE_MS = 5000;
const EVENTS_KEY = "fleetgraph.events";

const names = new Map(); // node id → name
const remember = (nodes) => {
  for (const node of nodes) names.set(node.id, nameOf(node));
  events.draw();
};
const events = new EventPanel((id) => names.get(id) ?? id);
const list = new NodeList({ refused, named: remember });
const page = new NodePage({ refused, named: remember });
let feed = null;

/** Sign in with a token, or say why not. */
async function signIn(token) {
  signInProblem("");
  let start;
  try {
    start = await ask(START, {}, token);
  } catch (error) {
    if (error.code === "UNREACHABLE" && storedToken() === token) {
      showApp();
      status("waiting", RETRY_MS / 1000);
      setTimeout(() => storedToken() === token && signIn(token), RETRY_MS);
      return;
    }
    signOut(
      error.code === "UNAUTHENTICATED"
        ? `This token does not sign in: ${error.message}.`
        : error.code === "FORBIDDEN"
          ? `This token may not read the fleet: ${error.message}.`
          : error.message,
    );
    return;
  }
  storeToken(token);
  byId("token").value = "";
  byId("viewer").textContent = start.viewer.name;
  byId("viewer").title = `${start.viewer.role}: ${start.viewer.permissions.join(", ")}`;
  showApp();
  events.reset();
  follow(start.feedCursor);
  list.load();
  route();
}

function signOut(problem = "") {
  feed?.stop();
  feed = null;
  forgetToken();
  list.reset();
  page.leave();
  names.clear();
  events.reset();
  notice("");
  byId("app").hidden = true;
  byId("sign-in").hidden = false;
  document.title = "Fleetgraph";
  signInProblem(problem);
  byId("token").focus();
}

function showApp() {
  byId("sign-in").hidden = true;
  byId("app").hidden = false;
}

/**
 * Follow the feed behind a cursor that is older than everything the views read: what happens between reading and
 * following is heard, and a node that was heard of is read again.
 */
function follow(cursor) {
  feed?.stop();
  feed = new Feed(storedToken(), {
    onEvent(event) {
      events.hear(event);
      if (event.nodeId) {
        list.hear(event.nodeId);
        page.hear(event.nodeId);
      }
    },
    onStatus: status,
    onExpired: startOver,
    onRejected: () => signOut("The server no longer accepts this token."),
  });
  feed.start(cursor);
}

/** The log no longer reaches back to where we were: read everything again and follow from there. */
async function startOver() {
  status("connecting");
  try {
    const { feedCursor } = await ask(START);
    follow(feedCursor);
    list.load();
    if (page.id) page.hear(page.id);
  } catch (error) {
    refused(error);
    if (error.code === "UNREACHABLE") setTimeout(startOver, RETRY_MS);
  }
}

function refused(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.code === "UNAUTHENTICATED") {
    signOut(`The server no longer accepts this token: ${error.message}.`);
    return;
  }
  const text = error.requestId ? `${error.message} (${error.requestId})` : error.message;
  notice(text);
  // It is asked again by itself: the notice need not stay.
  if (error.code === "UNREACHABLE") setTimeout(() => byId("problem").textContent === text && notice(""), NOTICE_MS);
}

function notice(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

function signInProblem(text) {
  byId("sign-in-error").textContent = text;
  byId("sign-in-error").hidden = !text;
}

function status(state, seconds) {
  const element = byId("connection");
  if (state === "live") notice("");
  element.dataset.status = state;
  element.textContent = { connecting: "Connecting", live: "Live", waiting: `Reconnecting in ${seconds} s` }[state];
}

/** Show what the address names: `#/` the list, `#/node/<id>` a node, `#/node/<id>/<part>` a part of its page. */
function route() {
  const token = takeTokenOfAddress();
  if (token !== null) {
    signOut();
    signIn(token);
    return;
  }
  const [, id, part] = /^#\/node\/([^/]+)(?:\/([a-z]+))?$/.exec(location.hash) ?? [];
  byId("list").hidden = Boolean(id);
  byId("node").hidden = !id;
  if (id) {
    if (!page.id) listScroll = scrollY;
    page.show(id, part);
  } else {
    if (page.id) page.leave();
    document.title = "Fleetgraph";
    scrollTo(0, listScroll);
  }
  events.only(id ?? null, names.get(id));
  for (const link of document.querySelectorAll("[data-view]")) {
    if (id) link.removeAttribute("aria-current");
    else link.setAttribute("aria-current", "page");
  }
}
let listScroll = 0;

function showEvents(shown) {
  byId("events").hidden = !shown;
  byId("toggle-events").setAttribute("aria-expanded", String(shown));
  sessionStorage.setItem(EVENTS_KEY, shown ? "shown" : "hidden");
}

byId("sign-in").querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(byId("token").value.trim());
});
byId("sign-out").addEventListener("click", () => signOut());
byId("toggle-events").addEventListener("click", () => showEvents(byId("events").hidden));
addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea, dialog");
  if (event.key !== "/" || typing || byId("list").hidden || byId("app").hidden) return;
  event.preventDefault();
  byId("text").focus();
});
setInterval(() => {
  list.tick();
  tickTimes(byId("node"));
}, TICK_MS);

const narrow = matchMedia("(max-width: 1100px)").matches;
showEvents((sessionStorage.getItem(EVENTS_KEY) ?? (narrow ? "hidden" : "shown")) === "shown");
const token = takeTokenOfAddress() ?? storedToken();
if (token) signIn(token);
else signOut();
