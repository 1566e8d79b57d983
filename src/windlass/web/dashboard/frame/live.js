// What is live: one stream of the API says that something has changed; then the page's own regions are asked for anew,
// rendered by the server, and only what differs in them is changed. There is no other way by which a page changes itself.
import { morph } from "./morph.js";
import { times } from "./time.js";

const policy = window.trustedTypes?.createPolicy("windlass", { createHTML: (text) => text }) ?? { createHTML: (text) => text };
const REGIONS = "X-Windlass-Regions";
const TOLD = "X-Windlass-Told";
const state = { source: null, paused: false, fresh: Date.now(), wanted: false, busy: false, pace: 1, tries: 0, how: "again", tag: "", told: "", timer: 0, waits: 0, over: false };
const data = document.body.dataset;
const regions = () => document.querySelectorAll("[data-live]");

function says() {
  const age = (Date.now() - state.fresh) / 1000;
  const told = age < 10 ? `${age.toFixed(1)} s` : age < 90 ? `${Math.round(age)} s` : `${Math.round(age / 60)} min`;
  if (state.over) return ["old", "Signed out"];
  if (state.paused) return ["paused", `Paused · ${told}`];
  if (state.how === "live") return [age > 30 ? "old" : "live", `Live · ${told}`];
  if (!data.stream) return [age > 3 * usual() + 5 ? "old" : "live", `Checked · ${told}`];
  return state.how === "poll" ? ["poll", `Polling · ${told}`] : ["again", state.tries ? `Reconnecting · ${told}` : "Connecting"];
}

function show() {
  const [kind, word] = says();
  const room = document.getElementById("live");
  if (room.dataset.state !== kind) {
    room.dataset.state = kind;
    document.getElementById("live-told").textContent = word.split(" · ")[0];
  }
  document.getElementById("live-word").textContent = word;
}

// What the server has rendered, as elements that are not yet on the page.
export const parsed = (text) => new DOMParser().parseFromString(policy.createHTML(text), "text/html");

// Where the regions of this page are asked for; a page whose script shows something else than its address says so here.
export const asking = { address: () => location.href };

function place(text) {
  const fresh = parsed(text);
  for (const region of regions()) {
    const next = fresh.querySelector(`[data-live="${CSS.escape(region.dataset.live)}"]`);
    if (next && region.dataset.held === undefined) morph(region, next);
  }
  times();
  document.dispatchEvent(new CustomEvent("windlass:fresh"));
}

export async function load(how = "shared") {
  clearTimeout(state.timer);
  state.busy = true;
  state.wanted = false;
  try {
    const headers = { [REGIONS]: how, ...(state.tag && { "If-None-Match": state.tag }), ...(state.told && { [TOLD]: state.told }) };
    const address = asking.address();
    const answer = await fetch(address, { headers, cache: "no-store", redirect: "error" });
    if (answer.status === 401) return end();
    if (answer.ok && answer.headers.get("content-type")?.startsWith("text/html")) {
      const text = await answer.text();
      // Somebody may have gone on to something else meanwhile: its own answer is on its way.
      if (address === asking.address()) place(text);
      state.tag = answer.headers.get("etag") ?? "";
    }
    if (answer.ok || answer.status === 304) {
      state.fresh = Date.now();
      state.pace = Number(answer.headers.get("x-windlass-pace")) || 1;
    }
  } catch {
    // What is shown grows older, and says so.
  }
  state.busy = false;
  if (document.querySelector("[data-over]")) ended();
  else open();
  show();
  later(state.wanted || how === "own" ? state.pace : usual());
}

const usual = () => Math.max(state.pace, Number(data.every) || 5);

function later(seconds) {
  clearTimeout(state.timer);
  if (!state.paused && !state.over && !document.hidden) state.timer = setTimeout(() => load(), seconds * 1000);
}

function changed() {
  if (state.wanted || state.paused) return;
  state.wanted = true;
  if (!state.busy) later(Math.max(0, state.pace - (Date.now() - state.fresh) / 1000));
}

// Ask for the regions now, not for what was rendered for others a moment ago: something was done on this page.
export function refresh() {
  clearTimeout(state.timer);
  state.tag = "";
  if (!state.busy) load("own");
  else state.wanted = true;
}

function end() {
  state.over = true;
  state.busy = false;
  close();
  const banner = document.getElementById("banner");
  banner.textContent = "Your session is over. Reload the page to sign in.";
  banner.hidden = false;
  show();
}

function close() {
  state.source?.close();
  state.source = null;
  clearTimeout(state.timer);
}

function open() {
  if (state.source || state.waits || state.paused || state.over || document.hidden || !data.stream) return;
  if (document.querySelector("[data-over]")) return void (state.how = "live");
  const source = (state.source = new EventSource(data.api + data.stream));
  const came = (event) => {
    state.how = "live";
    state.tries = 0;
    state.told = event.lastEventId;
    changed();
  };
  for (const name of ["view", "job", "entry"]) source.addEventListener(name, came);
  source.addEventListener("end", (event) => {
    came(event);
    ended();
  });
  source.addEventListener("via", (event) => (state.how = JSON.parse(event.data).via === "away" ? "again" : "live"));
  source.addEventListener("closing", () => again(source));
  source.addEventListener("error", () => again(source));
}

// What the stream tells of has ended: the page is asked for now and then, and streams again if that goes on.
function ended() {
  state.source?.close();
  state.source = null;
}

function again(source) {
  if (state.source !== source) return;
  source.close();
  state.source = null;
  state.how = ++state.tries > 3 ? "poll" : "again";
  const wait = Math.min(30, 2 ** state.tries) * (0.5 + Math.random() / 2);
  state.waits = setTimeout(() => {
    state.waits = 0;
    open();
  }, wait * 1000);
}

export function pause(on = !state.paused) {
  state.paused = on;
  const button = document.getElementById("live-switch");
  button.setAttribute("aria-pressed", String(on));
  button.setAttribute("aria-label", on ? "Resume live updates" : "Pause live updates");
  if (on) close();
  else wake();
  show();
}

function wake() {
  clearTimeout(state.waits);
  state.waits = 0;
  open();
  load();
}

export function live() {
  if (!data.stream && !regions().length) return void (document.getElementById("live").hidden = true);
  if (!data.stream) state.how = "poll";
  document.getElementById("live-switch").addEventListener("click", () => pause());
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) close();
    else if (!state.paused) wake();
  });
  addEventListener("pagehide", close);
  open();
  later(usual());
  show();
  setInterval(show, 500);
}
