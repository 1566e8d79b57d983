// The list of jobs: what is selected and what is done to it, the job beside the list, columns and saved searches.
import { ask, call } from "../frame/act.js";
import { keep } from "../frame/frame.js";
import { step } from "../frame/keys.js";
import { asking, load } from "../frame/live.js";
import { operate } from "../frame/operation.js";
import { toast } from "../frame/toast.js";

const $ = (id) => document.getElementById(id);
const rows = () => [...document.querySelectorAll("[data-row]")];
const line = () => new URLSearchParams(location.search).get("q") ?? "";
const state = { picked: new Set(), last: null, all: false, told: "", toldAt: 0 };
const LONGEST = 7000;

// What is live: the rows that are here, with the columns that are chosen; new ones are counted by the server.

if ($("columns")) asking.address = () => {
  const url = new URL(location.href);
  const ids = rows().map((row) => row.dataset.id);
  if (ids.length) url.searchParams.set("rows", ids.join("."));
  if ($("pager")?.dataset.more !== undefined) url.searchParams.set("more", "1");
  const boxes = document.querySelectorAll("#columns input[name=columns]");
  if (boxes.length) url.searchParams.set("shows", columns().join(".") || "none");
  if (url.href.length > LONGEST) url.searchParams.delete("rows");
  return url.href;
};

document.addEventListener("windlass:fresh", () => {
  const here = new Set(rows().map((row) => row.dataset.id));
  for (const id of state.picked) if (!here.has(id)) state.picked.delete(id);
  if (state.picked.size < here.size) state.all = false;
  show();
  tell();
});

// Who does not see the page is told of new rows, but not all the time.
function tell() {
  const word = $("new")?.textContent.trim() ?? "";
  if (!word || word === state.told || Date.now() - state.toldAt < 10_000) return;
  state.told = word;
  state.toldAt = Date.now();
  $("news").textContent = word;
}

// Selecting.

const total = () => document.querySelector("[data-live=chips]")?.dataset.total ?? "";

function show() {
  const bar = $("bulk");
  if (!bar) return;
  const all = rows(), n = state.picked.size;
  for (const row of all) {
    const on = state.picked.has(row.dataset.id);
    row.setAttribute("aria-selected", String(on));
    const box = row.querySelector("[data-pick]");
    if (box.checked !== on) box.checked = on;
  }
  const page = $("pick-page");
  if (page) {
    page.checked = n > 0 && n === all.length;
    page.indeterminate = n > 0 && n < all.length;
  }
  bar.hidden = !n;
  document.body.classList.toggle("has-bulk", n > 0);
  const word = state.all ? `All ${total()} that match are selected` : `${n} selected`;
  if ($("bulk-word").textContent !== word) $("bulk-word").textContent = word;
  const more = $("bulk-all");
  const whole = n === all.length && $("pager") !== null;
  more.hidden = state.all || n === 0 || (n === all.length && !whole);
  more.textContent = n < all.length ? `Select this page (${all.length})` : `Select all matching${total() && ` (${total()})`}`;
  for (const link of bar.querySelectorAll("[data-export]")) {
    const url = new URL(link.href);
    const where = state.all ? line() : "";
    url.search = "";
    url.searchParams.set("format", link.dataset.export);
    if (where) url.searchParams.set("where", where);
    if (!state.all) for (const id of state.picked) url.searchParams.append("id", id);
    link.href = url.href;
  }
}

function pick(id, on) {
  state.all = false;
  if (on) state.picked.add(id);
  else state.picked.delete(id);
}

function picked(box, shift) {
  const all = rows().map((row) => row.dataset.id);
  const [from, to] = [all.indexOf(state.last), all.indexOf(box.value)].sort((a, b) => a - b);
  if (shift && from >= 0) for (const id of all.slice(from, to + 1)) pick(id, box.checked);
  else pick(box.value, box.checked);
  state.last = box.value;
  show();
}

function pickPage(on = true) {
  for (const row of rows()) pick(row.dataset.id, on);
  show();
}

function none() {
  state.picked.clear();
  state.all = false;
  show();
}

// Orders: counted by the server, asked about, begun; how they go on is among the live regions.

const WORDS = {
  retry: ["Retry", "They are queued again now, finished ones with fresh attempts. Jobs that wait or run are left as they are.", "Retry"],
  cancel: ["Cancel", "Waiting jobs are cancelled at once, running ones are asked to stop. Cancelled jobs can be retried later.", "Cancel them"],
  delete: ["Delete", "They are removed with their history. This cannot be undone; export them first if they may be needed. Running jobs stay.", "Delete them"],
};

async function order(deed) {
  const here = document.querySelector("[data-row][data-here]");
  const ids = state.picked.size ? [...state.picked] : here ? [here.dataset.id] : [];
  if (!ids.length) return void toast("Nothing is selected: choose rows first, with x or their boxes");
  const where = line();
  const which = state.all ? { everything: true, ...(where && { filter: { where } }) } : { ids };
  const counted = await call("POST", "queue/bulk", { action: deed, ...which, dryRun: true });
  if (counted === null) return;
  const many = `${counted.matched.toLocaleString("en")}${counted.exact ? "" : " or more"} ${counted.matched === 1 ? "job" : "jobs"}`;
  if (!counted.matched) return void toast("None of them can be meant: windlass's own jobs are left alone");
  const [word, text, yes] = WORDS[deed];
  if (!(await ask({ title: `${word} ${many}?`, text, yes, danger: deed === "delete" }))) return;
  if ((await operate(`${word} ${many}`, "queue/bulk", { action: deed, ...which })) === null) return;
  none();
}

// The job beside the list.

const peeked = () => new URLSearchParams(location.search).get("peek");

function peek(id, back = null) {
  const url = new URL(location.href);
  if (id) url.searchParams.set("peek", id);
  else url.searchParams.delete("peek");
  history.replaceState(null, "", url);
  for (const row of rows()) row.classList.toggle("peeked", row.dataset.id === id);
  const pane = $("peek");
  if (id) pane.setAttribute("aria-busy", "true");
  else pane.hidden = true;
  load().then(() => pane.removeAttribute("aria-busy"));
  back?.focus();
}

function close() {
  const row = rows().find((one) => one.dataset.id === peeked());
  peek(null, row?.querySelector("[data-peek]"));
}

document.addEventListener("windlass:here", (event) => {
  if (peeked() && event.target.dataset.id) peek(event.target.dataset.id);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select") || document.querySelector("dialog[open]")) return;
  const here = document.querySelector("[data-row][data-here]");
  const menu = event.target.closest("details.menu[open]");
  if (event.key === "Escape" && menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  } else if (event.key === "Escape" && peeked()) close();
  else if (event.key === "Escape" && state.picked.size) none();
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && here && !menu && !event.target.closest("#peek")) {
    const open = peeked();
    step(event.key === "ArrowDown" ? 1 : -1);
    const now = document.querySelector("[data-row][data-here]");
    if (!open) peek(now.dataset.id);
  } else if (event.key === "p" && here && !event.shiftKey) peeked() === here.dataset.id ? close() : peek(here.dataset.id);
  else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

document.addEventListener("click", (event) => {
  const on = event.target;
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(on)) menu.open = false;
  if (on.matches("[data-pick]")) return picked(on, event.shiftKey);
  if (on.id === "pick-page") return pickPage(on.checked);
  const button = on.closest("[data-bulk]");
  if (button) return void order(button.dataset.bulk);
  if (on.closest("#bulk-none")) return none();
  if (on.closest("#bulk-all")) {
    if (state.picked.size < rows().length) pickPage();
    else if ($("pager")) {
      state.all = true;
      show();
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const closes = on.closest("[data-peek-close]");
  const row = on.closest("[data-row]");
  const asked = on.closest("[data-peek]") ?? (row && !on.closest("a, button, input, label") && !getSelection().toString() ? row : null);
  if (!closes && !asked) return;
  event.preventDefault();
  if (closes) return close();
  document.querySelector("[data-row][data-here]")?.removeAttribute("data-here");
  row.setAttribute("data-here", "");
  if (peeked() === row.dataset.id) close();
  else peek(row.dataset.id);
});

// Columns: kept in a cookie, so that the server knows them.

const columns = () => [...document.querySelectorAll("#columns input:checked")].map((one) => one.value);

$("columns")?.addEventListener("change", () => {
  keep("jobs", columns().join(".") || "none");
  const url = new URL(location.href);
  url.searchParams.delete("columns");
  history.replaceState(null, "", url);
  load();
});
if (new URLSearchParams(location.search).has("columns")) keep("jobs", columns().join(".") || "none");

// Searches that were saved in this browser, by name.

const KEPT = `windlass_views ${new URL(document.body.dataset.base, location.href).pathname}`;
const MOST = 50;

function saved() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => Array.isArray(one) && one.every((part) => typeof part === "string")) : [];
  } catch {
    return [];
  }
}

function save(views) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(views.slice(-MOST)));
  } catch {
    toast("This browser keeps nothing for this page: bookmark its address", "bad");
  }
  list();
}

function element(name, text = "", given = {}) {
  const one = document.createElement(name);
  one.textContent = text;
  for (const [key, value] of Object.entries(given)) one.setAttribute(key, value);
  return one;
}

function list() {
  const views = saved();
  const room = $("own-views");
  room.hidden = !views.length;
  room.querySelector("ul").replaceChildren(...views.map(([name, text]) => {
    const item = element("li");
    const link = element("a", "", { href: `${location.pathname}?${new URLSearchParams(text ? { q: text } : {})}` });
    link.append(element("span", name), element("code", text || "all jobs"));
    const away = element("button", "×", { type: "button", class: "tool small", "aria-label": `Forget ${name}` });
    away.addEventListener("click", (event) => {
      event.stopPropagation();
      save(saved().filter(([other]) => other !== name));
    });
    item.append(link, away);
    return item;
  }));
}

$("save-view")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = event.target.elements.name;
  const name = field.value.trim();
  if (!name) return;
  save([...saved().filter(([other]) => other !== name), [name, line()]]);
  field.value = "";
  toast(`Saved as ${name}`);
});

if ($("own-views")) list();
show();
if (document.querySelector("[data-later]")) load();
