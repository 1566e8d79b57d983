// What every page has: theme and times, keys, actions, what is live.
import { act } from "./act.js";
import { keys } from "./keys.js";
import { live } from "./live.js";
import { operations } from "./operation.js";
import { search } from "./search.js";
import { toast } from "./toast.js";
import { times } from "./time.js";

const root = document.documentElement;
const path = new URL(document.body.dataset.base, location.href).pathname;

export function keep(name, value) {
  document.cookie = `windlass_${name}=${value}; path=${path}; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;
}

export function turnTheme() {
  const all = ["system", "light", "dark"];
  const next = all[(all.indexOf(root.dataset.theme) + 1) % all.length];
  root.dataset.theme = next;
  keep("theme", next);
  document.querySelector("[data-turn=theme]")?.setAttribute("aria-label", `Theme: ${next}. Change it`);
  toast(`Theme: ${next === "system" ? "as the system has it" : next}`);
}

document.addEventListener("click", (event) => {
  const on = event.target.closest("[data-turn],[data-open],[data-set],[data-copy]");
  if (!on) return;
  if (on.dataset.turn) turnTheme();
  if (on.dataset.open) document.getElementById(on.dataset.open).showModal();
  if (on.dataset.copy !== undefined) copy(on.dataset.copy);
  if (on.dataset.set === "time") {
    document.body.dataset.time = on.value;
    keep("time", on.value);
    for (const one of on.parentElement.children) one.setAttribute("aria-pressed", String(one === on));
    times();
  }
});

export async function copy(text) {
  try {
    // Over plain HTTP from another machine browsers have no clipboard: there a selection is copied.
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else if (!copySelected(text)) throw new Error("refused");
    toast(`Copied ${text.length > 60 ? "it" : text}`);
  } catch {
    toast("This browser does not let pages copy here: select the text", "bad");
  }
}

function copySelected(text) {
  const here = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  here?.focus();
  return done;
}

times();
setInterval(times, 1000);
act();
keys({ turnTheme, copy });
live();
operations();
search();
// What only some pages need.
if (document.querySelector("form[data-send]")) import("./form.js").then((it) => it.forms());
if (document.querySelector("form[data-drop]")) import("./upload.js").then((it) => it.uploads());
