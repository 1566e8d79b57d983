// Orders for many jobs run in the background: begin one, and see how far it is, also after one has gone to another page.
import { call } from "./act.js";
import { refresh } from "./live.js";
import { toast } from "./toast.js";

const KEPT = "windlass_operations";
const ended = new Set(["succeeded", "failed", "cancelled"]);
const words = { done: "done", requested: "asked to stop", refused: "left as they are", duplicate: "whose key is held", missing: "gone" };

function kept(change = (all) => all) {
  try {
    const all = change(JSON.parse(sessionStorage.getItem(KEPT) ?? "[]"));
    sessionStorage.setItem(KEPT, JSON.stringify(all));
    return all;
  } catch {
    return []; // not kept, then
  }
}

function element(name, attributes = {}, ...children) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.append(...children);
  return one;
}

const number = (n) => n.toLocaleString("en");

// Show how far the operation is until it has ended. `word` says what it is, as "Replay of LookupError".
function follow({ id, word }) {
  const bar = element("progress", { max: 1, "aria-label": word });
  const text = element("span", { class: "small" }, "Begins");
  const link = element("a", { href: `${document.body.dataset.base}jobs/${id}` }, word);
  const stop = element("button", { type: "button", class: "button small" }, "Stop");
  const room = element("div", { class: "operation", "data-operation": id }, element("strong", {}, link), bar, text, stop);
  document.getElementById("operations").append(room);
  stop.addEventListener("click", () => call("POST", `queue/${id}/cancel`).then(look));
  let timer = 0;

  function over(job) {
    kept((all) => all.filter((one) => one.id !== id));
    const result = job.result ?? {};
    const told = Object.entries(words).filter(([name]) => result[name]).map(([name, what]) => `${number(result[name])} ${what}`);
    bar.value = 1;
    text.textContent = job.status === "succeeded" ? told.join(", ") || "nothing was left to do" : `${job.status}${job.error ? `: ${job.error.message}` : ""}`;
    stop.textContent = "Close";
    stop.replaceWith(stop.cloneNode(true));
    room.lastChild.addEventListener("click", () => room.remove());
    toast(`${word}: ${text.textContent}`, job.status === "succeeded" ? "" : "bad");
    refresh();
  }

  async function look() {
    clearTimeout(timer);
    const answer = await fetch(`${document.body.dataset.api}queue/${id}`, { cache: "no-store" }).catch(() => null);
    if (answer && [401, 403, 404].includes(answer.status)) return kept((all) => all.filter((one) => one.id !== id)), room.remove();
    const job = answer?.ok ? await answer.json() : null;
    if (job && ended.has(job.status)) return over(job);
    const { done = 0, of = 0 } = job?.progress ?? {};
    if (of) bar.value = done / of;
    if (job) text.textContent = of ? `${number(done)} of ${number(of)}` : job.status === "queued" ? "Waits for a worker" : "Begins";
    timer = setTimeout(look, document.hidden ? 5000 : 700);
  }
  look();
}

// Begin what a route answers with an operation: {id, matched}. Resolves to its answer, or null.
export async function operate(word, path, body) {
  const told = await call("POST", path, body);
  if (told?.id) {
    kept((all) => [...all, { id: told.id, word }]);
    follow({ id: told.id, word });
  }
  return told;
}

export function operations() {
  kept().forEach(follow);
}
