// Replaying a group: first what it would meet, then how fast, then how far it is.
import { ask, call } from "../frame/act.js";
import { operate } from "../frame/operation.js";

const REASONS = {
  already_replayed: "were replayed before",
  key_held: "would wait for a unique key that another job holds",
  queue_full: "do not fit into their queue",
  payload_invalid: "have a payload that does not fit",
};
const number = (n) => n.toLocaleString("en");

export function element(name, attributes = {}, ...children) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.append(...children);
  return one;
}

export function field(label, input, note = "") {
  const all = [element("span", {}, label), input];
  if (note) all.push(element("small", { class: "muted" }, note));
  return element("label", { class: "field" }, ...all);
}

function found({ matched, exact, lookedAt, conflicts }) {
  const list = conflicts.map(({ why, count }) => element("li", {}, `${number(count)} ${REASONS[why] ?? why}: left out`));
  const head = lookedAt < matched ? `Of the newest ${number(lookedAt)}:` : "";
  const clear = conflicts.length ? [] : [element("li", {}, lookedAt < matched ? `None of the newest ${number(lookedAt)} would be left out` : "None of them would be left out")];
  return element("div", { class: "rehearsal" }, element("p", {}, element("strong", {}, `${number(matched)}${exact ? "" : "+"} failed jobs`), " match."), ...(head && conflicts.length ? [element("p", {}, head)] : []), element("ul", {}, ...list, ...clear));
}

async function replay(button) {
  const { replay: fingerprint, name } = button.dataset;
  button.setAttribute("aria-busy", "true");
  const told = await call("POST", "queue/dead-letter/replay", { fingerprint, dryRun: true });
  button.removeAttribute("aria-busy");
  if (told === null) return;
  const most = element("input", { type: "number", min: 1, max: Math.max(told.matched, 1), value: told.matched, inputmode: "numeric", required: "" });
  const rate = element("input", { type: "number", min: 0.1, max: 10000, step: "any", value: Math.min(20, Math.max(1, Math.ceil(told.matched / 30))), inputmode: "decimal" });
  const takes = element("p", { class: "muted", "aria-live": "polite" });
  const tell = () => {
    const seconds = rate.value ? Math.max(0, most.value - 1) / rate.value : 0;
    takes.textContent = !rate.value ? "All at once." : seconds < 90 ? `The last one is due after ${Math.round(seconds)} s.` : `The last one is due after ${Math.round(seconds / 60)} min.`;
  };
  for (const one of [most, rate]) one.addEventListener("input", tell);
  tell();
  const more = element("div", { class: "stack" }, found(told), element("div", { class: "pair" }, field("How many, newest first", most), field("Jobs a second", rate, "empty: all at once")), takes);
  if (!(await ask({ title: `Replay ${name}?`, text: "Each becomes a new job with the same payload; the failed one stays.", yes: "Replay", more }))) return;
  const body = { fingerprint, ...(rate.value && { rate: Number(rate.value) }), ...(Number(most.value) < told.matched && { limit: Number(most.value) }) };
  await operate(`Replay of ${name}`, "queue/dead-letter/replay", body);
}

export function replays() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-replay]");
    if (button && !button.hasAttribute("aria-busy")) replay(button);
  });
}
