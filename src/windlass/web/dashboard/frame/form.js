// Forms that ask the API: form[data-send="POST things/7"]. Fields become members by their names; what is refused is said beside them.
import { call } from "./act.js";
import { refresh } from "./live.js";
import { toast } from "./toast.js";

export function make(name, attributes = {}, ...children) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  one.append(...children);
  return one;
}

// Which field is meant: "body.priority.int" says in which of its kinds, too.
const field = (at) => {
  const parts = at.replace(/^body\./, "").split(".");
  const end = parts.findIndex((part) => !/^\w+$/.test(part));
  return parts.slice(0, end < 0 ? undefined : end).join(".");
};

// A problem in one sentence.
export function problem(told) {
  const by = new Map();
  for (const { at, message } of told.errors ?? []) by.set(field(at), [...(by.get(field(at)) ?? []), message]);
  return [...by].map(([name, why]) => (name ? `${name}: ${why.join(", or ")}` : why.join(", or "))).join("; ") || told.detail || told.title || "It was refused";
}

// What a form says: numbers as numbers, boxes as true or false, what is empty left out; "a.b" is the member b of a.
export function said(form, button = null) {
  const found = {};
  for (const one of form.elements) {
    if (!one.name || one.disabled || one.type === "file" || (one.type === "radio" && !one.checked)) continue;
    if (one.localName === "button" && one !== button) continue;
    const value = one.localName === "button" ? one.value || true : one.type === "checkbox" ? one.checked : one.multiple ? [...one.selectedOptions].map((it) => it.value) : one.value;
    if (value === "") continue;
    const path = one.name.split(".");
    const last = path.pop();
    const room = path.reduce((at, part) => (at[part] ??= {}), found);
    room[last] = one.type === "number" && Number.isSafeInteger(Number(value)) ? Number(value) : one.type === "number" ? parseFloat(value) : value;
  }
  return found;
}

function tell(form, text, link = null) {
  const room = form.querySelector(".form-told");
  if (!room) return toast(text, "bad", link);
  room.replaceChildren(text, ...(link ? [" ", make("a", { href: link.href }, link.word)] : []));
  room.hidden = !text;
}

async function go(form, button) {
  const [method, path] = form.dataset.send.split(" ");
  for (const one of form.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  tell(form, "");
  button?.setAttribute("aria-busy", "true");
  const told = await call(method, path, said(form, button), (why, link, refused) => {
    for (const { at } of refused?.errors ?? []) {
      [...form.elements].find((one) => one.name === field(at))?.setAttribute("aria-invalid", "true");
    }
    tell(form, refused?.errors ? problem(refused) : why, link);
    form.querySelector("[aria-invalid]")?.focus();
  });
  button?.removeAttribute("aria-busy");
  if (told === null) return;
  if (form.dataset.done) toast(form.dataset.done);
  form.dispatchEvent(new CustomEvent("windlass:done", { bubbles: true, detail: told }));
  if (form.dataset.go) location.assign(document.body.dataset.base + form.dataset.go.replace(/\{(\w+)\}/g, (_, member) => encodeURIComponent(told[member] ?? "")));
  else refresh();
}

export function forms() {
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-send]");
    if (!form) return;
    event.preventDefault();
    if (!event.submitter?.hasAttribute("aria-busy")) go(form, event.submitter);
  });
}
