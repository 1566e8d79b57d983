// The job's page: signals, another payload, and where to go when something has been done.
import { ask, call } from "../frame/act.js";
import { refresh } from "../frame/live.js";
import { toast } from "../frame/toast.js";

const job = document.getElementById("job");
const base = document.body.dataset.base;

function field(label, note, value, rows) {
  const room = document.createElement("label");
  const word = document.createElement("span");
  const area = document.createElement("textarea");
  const told = document.createElement("small");
  room.className = "field";
  word.textContent = label;
  told.className = "muted";
  told.textContent = note;
  area.className = "mono";
  area.rows = rows;
  area.spellcheck = false;
  area.value = value;
  room.append(word, area, told);
  return [room, area];
}

const isJson = (text) => { try { JSON.parse(text); return true; } catch { return false; } };

async function signal(name) {
  const [more, area] = field("Value", "JSON, or text; empty is null", "", 4);
  if (!(await ask({ title: `Send the signal ${name}?`, text: "The job goes on with this value. Of one name the first signal counts.", yes: "Send it", more }))) return;
  const text = area.value.trim();
  const value = text === "" ? "null" : isJson(text) ? text : JSON.stringify(area.value);
  // The value goes as it was typed: a number of many digits keeps them.
  if (await call("POST", `queue/${job.dataset.id}/signal`, `{"name":${JSON.stringify(name)},"value":${value}}`)) {
    toast("The signal is sent");
    refresh();
  }
}

async function edit() {
  let text = document.getElementById("edit-payload").content.textContent;
  for (;;) {
    const [more, area] = field("Payload", "A JSON object. *** keeps the secret that is there", text, 14);
    if (!(await ask({ title: "Do its work again with another payload?", text: "A new job is enqueued with this payload, under the same keys and limit; this one stays as it is.", yes: "Enqueue it", more }))) return;
    text = area.value;
    if (!isJson(text)) {
      toast("That is not JSON: nothing was enqueued", "bad");
      continue;
    }
    const made = await call("POST", `queue/${job.dataset.id}/replay`, `{"payload":${text}}`);
    if (made) return location.assign(`${base}jobs/${made.id}`);
  }
}

document.addEventListener("click", (event) => {
  const on = event.target.closest("[data-signal], [data-edit]");
  if (!on) return;
  if (on.dataset.edit !== undefined) edit();
  else signal(on.dataset.signal);
});

document.addEventListener("windlass:done", (event) => {
  const { target, detail } = event;
  if (target.classList.contains("goes-to-job") && detail.id) location.assign(`${base}jobs/${detail.id}`);
  if (target.classList.contains("goes-to-list")) location.assign(job.dataset.list);
});
