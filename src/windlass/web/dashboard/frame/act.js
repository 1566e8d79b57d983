// Buttons that ask the API: data-act="POST queues/mail/pause", with a question before it (data-ask) and a word after it.
import { refresh } from "./live.js";
import { toast } from "./toast.js";

const hex = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");

// Ask the API; gives what it answers, or null after having said what was wrong, in a toast unless `refused` says it.
export async function call(method, path, body, refused = (why, there) => toast(why, "bad", there)) {
  const headers = { "Content-Type": "application/json" };
  if (method === "POST") headers["Idempotency-Key"] = hex();
  try {
    const answer = await fetch(document.body.dataset.api + path, { method, headers, body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body) });
    const text = await answer.text();
    const told = text ? JSON.parse(text) : {};
    if (answer.ok) return told;
    const there = told.existing ? { href: `${document.body.dataset.base}jobs/${encodeURIComponent(told.existing)}`, word: "See that job" } : null;
    refused(told.detail ?? told.title ?? `The server answered ${answer.status}`, there, told);
  } catch {
    toast("The server cannot be reached: nothing was done, or its answer was lost", "bad");
  }
  return null;
}

// The one question before something is done: resolves to whether to go on.
export function ask({ title, text = "", yes = "Continue", danger = false, more = null }) {
  const dialog = document.getElementById("ask");
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-text").textContent = text;
  document.getElementById("ask-more").replaceChildren(...(more ? [more] : []));
  const button = document.getElementById("ask-yes");
  button.textContent = yes;
  button.classList.toggle("danger", danger);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

async function go(button) {
  const { act: what, body, ask: title, text, yes, done, danger, go: where } = button.dataset;
  if (title && !(await ask({ title, text, yes, danger: danger !== undefined }))) return;
  const [method, path] = what.split(" ");
  button.setAttribute("aria-busy", "true");
  const told = await call(method, path, body);
  button.removeAttribute("aria-busy");
  if (told === null) return;
  if (done) toast(done);
  button.dispatchEvent(new CustomEvent("windlass:done", { bubbles: true, detail: told }));
  if (where) location.assign(where);
  else refresh();
}

export function act() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (button && !button.hasAttribute("aria-busy")) go(button);
  });
}
