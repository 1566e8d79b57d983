// Schedules: runs by the viewer's own clock; the form that is tried while it is typed, and saved.
import { call } from "../frame/act.js";
import { refresh } from "../frame/live.js";
import { toast } from "../frame/toast.js";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

function yours() {
  for (const one of document.querySelectorAll("[data-at]")) one.textContent = one.closest("table") ? day.format(new Date(one.dataset.at)) : `${day.format(new Date(one.dataset.at))} for you`;
  for (const one of document.querySelectorAll("[data-yours]")) one.textContent = `For you, in ${zone}`;
}
yours();
document.addEventListener("windlass:fresh", yours);
document.addEventListener("windlass:done", (event) => {
  const leaves = event.target.closest("[data-leaves]");
  if (leaves) location.assign(leaves.dataset.leaves);
});

const form = () => document.getElementById("schedule");
let timer = 0;

// What is typed stands in the address, all but the payload: so the server tells what it means, as of every page.
function tried() {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form())) if (name !== "payload") fields.set(name, value);
  history.replaceState(null, "", `?${fields}`);
  refresh();
}

function soon(event) {
  if (!event.target.closest("#schedule")) return;
  delete form().parentElement.dataset.held;
  if (event.target.name === "payload") return;
  clearTimeout(timer);
  timer = setTimeout(tried, event.type === "change" ? 0 : 300);
}
addEventListener("input", soon);
addEventListener("change", soon);
addEventListener("click", (event) => {
  const chip = event.target.closest("[data-cron]");
  if (!chip) return;
  form().elements.cron.value = chip.dataset.cron;
  tried();
});

function wrong(id, text) {
  const room = document.getElementById(id);
  room.textContent = text;
  room.hidden = !text;
  // What is said here is not of the server's making: the form is left as it is until something is typed.
  if (text) form().parentElement.dataset.held = "";
  if (text) room.closest(".payload")?.querySelector("textarea")?.focus();
}

function payload(text) {
  if (!text.trim()) return undefined;
  const read = JSON.parse(text);
  if (read === null || typeof read !== "object" || Array.isArray(read)) throw new Error("expected an object, such as {\"name\": 1}");
  return text.trim();
}

addEventListener("submit", async (event) => {
  if (event.target !== form()) return;
  event.preventDefault();
  const at = form().elements;
  wrong("wrong-payload", "");
  wrong("refused", "");
  let given;
  try {
    given = payload(at.payload.value);
  } catch (error) {
    return void wrong("wrong-payload", `This is no payload: ${error.message}`);
  }
  const body = { ...JSON.parse(form().dataset.resent), type: at.type.value, overlap: at.overlap.value, missed: at.missed.value };
  if (at.rule.value === "every") body.every = Number(at.amount.value) * { s: 1, m: 60, h: 3600, d: 86400 }[at.unit.value];
  else Object.assign(body, { cron: at.cron.value.trim(), tz: at.tz.value.trim() || "UTC" });
  if (at.limit) body.missedLimit = Number(at.limit.value);
  if (at.queue.value) body.queue = at.queue.value;
  if (at.priority.value) body.priority = Number(at.priority.value);
  // The payload goes as it was typed: no digit of a number is lost on its way through this page.
  const text = JSON.stringify(body);
  const sent = given === undefined ? text : `${text.slice(0, -1)},"payload":${given}}`;
  const told = await call("PUT", `schedules/${encodeURIComponent(at.name.value)}`, sent, (why) => wrong("refused", why));
  if (told === null) return;
  toast(`${told.name} is saved`);
  location.assign(`${form().dataset.to}?${new URLSearchParams({ name: told.name })}`);
});
