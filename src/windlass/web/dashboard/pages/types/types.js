// Types: a job enqueued by hand, from fields or from JSON. Numbers go as they were typed, so that no digit is lost.
import { call } from "../frame/act.js";

const form = document.getElementById("enqueue");
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
let way = form?.querySelector("[data-way]") ? "fields" : "json";

// One field as JSON text, or nothing where it is left empty; a secret is text like any other.
function told(field, masked) {
  const text = masked && field.dataset.kind === "secret" && field.value ? "***" : field.value;
  if (field.dataset.kind === "number") return text.trim() === "" ? "" : NUMBER.test(text.trim()) ? text.trim() : JSON.stringify(text);
  if (field.dataset.kind === "json") {
    if (text.trim() !== "") JSON.parse(text);
    return text.trim();
  }
  return text === "" && field.dataset.required === undefined ? "" : JSON.stringify(text);
}

// The fields as one JSON text. A group of which nothing was filled in, and that may be left out, is left out.
function gathered(room, above, masked = false) {
  const parts = [];
  for (const one of room.querySelectorAll("[data-path], [data-group]")) {
    if (one.parentElement.closest("[data-group]") !== (above ? room : null)) continue;
    const path = one.dataset.path ?? one.dataset.group;
    let value;
    try {
      value = one.dataset.group === undefined ? told(one, masked) : gathered(one, true, masked);
    } catch (error) {
      wrong(path, `This is no JSON: ${error.message}`);
      throw error;
    }
    const name = path.slice(above ? room.dataset.group.length + 1 : 0);
    if (value === "" || (value === "{}" && one.dataset.optional !== undefined)) continue;
    parts.push(`${JSON.stringify(name)}:${value}`);
  }
  return `{${parts.join(",")}}`;
}

function wrong(path, text) {
  const room = form.querySelector(`[data-wrong="${CSS.escape(path)}"]`);
  if (!room) return false;
  const field = form.querySelector(`[data-path="${CSS.escape(path)}"]`);
  room.id = `wrong-${path}`;
  room.textContent = text;
  room.hidden = false;
  field?.setAttribute("aria-invalid", "true");
  field?.setAttribute("aria-describedby", room.id);
  return true;
}

function clear() {
  for (const one of form.querySelectorAll("[data-wrong]")) one.hidden = true;
  for (const one of form.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  for (const id of ["refused", "made"]) document.getElementById(id).hidden = true;
}

// What the server says of a payload stands beside the field that it is about, as far as there is one.
function refused(why) {
  const [head, list] = why.split(" does not fit its types: ");
  const rest = (list ? list.split("; ") : []).filter((part) => {
    const [path, ...words] = part.split(": ");
    return way === "json" || !wrong(path, words.join(": "));
  });
  const room = document.getElementById("refused");
  room.textContent = list ? (rest.length ? `${head} does not fit its types: ${rest.join("; ")}` : "Some fields do not fit.") : why;
  room.hidden = false;
  form.querySelector('[aria-invalid="true"]')?.focus();
}

function payload() {
  if (way === "fields") return gathered(form.querySelector('[data-way-of="fields"]'), false);
  const text = document.getElementById("whole").value.trim() || "{}";
  const read = JSON.parse(text);
  if (read === null || typeof read !== "object" || Array.isArray(read)) throw new Error("a payload is an object, such as {\"name\": 1}");
  return text;
}

async function send() {
  clear();
  let given;
  try {
    given = payload();
  } catch (error) {
    return refused(error.message);
  }
  const at = form.elements;
  const body = { type: form.dataset.type };
  if (at.queue.value) body.queue = at.queue.value;
  if (at.priority.value) body.priority = Number(at.priority.value);
  if (at.delay.value) body.delay = Number(at.delay.value);
  if (at.tags.value.trim()) body.tags = at.tags.value.trim().split(/\s+/);
  const made = await call("POST", "queue/enqueue", `${JSON.stringify(body).slice(0, -1)},"payload":${given}}`, refused);
  if (!made) return;
  const link = document.createElement("a");
  link.href = form.dataset.job + made.id;
  link.textContent = `job …${made.id.slice(-8)}`;
  const room = document.getElementById("made");
  room.replaceChildren("Enqueued: ", link);
  room.hidden = false;
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
form?.addEventListener("click", (event) => {
  const chosen = event.target.closest("[data-way]");
  if (!chosen) return;
  // What was typed goes along, but for secrets; what is no JSON yet stays behind.
  if (chosen.dataset.way === "json" && way === "fields") {
    try {
      document.getElementById("whole").value = gathered(form.querySelector('[data-way-of="fields"]'), false, true);
    } catch { /* the example stays */ }
  }
  clear();
  way = chosen.dataset.way;
  for (const one of form.querySelectorAll("[data-way]")) one.setAttribute("aria-pressed", String(one === chosen));
  for (const one of form.querySelectorAll("[data-way-of]")) one.hidden = one.dataset.wayOf !== way;
});
