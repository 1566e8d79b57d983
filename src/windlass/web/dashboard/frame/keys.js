// Keys. Rows are [data-row]; what a page adds is a button or link with data-key="R" (data-key on rows names them).
import { pause } from "./live.js";

const OFF = "windlass_keys_off";
let first = "";

const rows = () => [...document.querySelectorAll("[data-row]")];
const here = () => document.querySelector("[data-row][data-here]");

export function step(by) {
  const all = rows();
  if (!all.length) return;
  const now = all.indexOf(here());
  const next = all[Math.min(Math.max(now < 0 ? (by > 0 ? 0 : all.length - 1) : now + by, 0), all.length - 1)];
  here()?.removeAttribute("data-here");
  next.setAttribute("data-here", "");
  (next.querySelector("a, button") ?? next).focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  next.dispatchEvent(new CustomEvent("windlass:here", { bubbles: true }));
}

const off = () => { try { return localStorage.getItem(OFF) === "1"; } catch { return false; } };

export function keys({ turnTheme, copy }) {
  const press = {
    "?": () => document.getElementById("help").showModal(),
    "/": () => document.getElementById("search")?.focus(),
    j: () => step(1),
    k: () => step(-1),
    x: () => here()?.querySelector("input[type=checkbox]")?.click(),
    ".": () => pause(),
    t: turnTheme,
    "[": () => document.querySelector("a[rel=prev]")?.click(),
    "]": () => document.querySelector("a[rel=next]")?.click(),
    y: () => { const text = here()?.dataset.id ?? (here()?.querySelector("[data-copy]") ?? document.querySelector("main [data-copy]"))?.dataset.copy; if (text) copy(text); },
    Enter: () => here()?.querySelector("a")?.click(),
  };
  const box = document.getElementById("keys-off");
  box.checked = off();
  box.addEventListener("change", () => { try { localStorage.setItem(OFF, box.checked ? "1" : "0"); } catch { /* not kept, then */ } });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && typing) return typing.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || typing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return void here()?.removeAttribute("data-here");
    if (off() && event.key.length === 1) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const go = first === "g" ? document.querySelector(`[data-go="${CSS.escape(event.key)}"]`) : null;
    first = event.key === "g" && first !== "g" ? "g" : "";
    const named = `:is(button, a)[data-key="${CSS.escape(event.key)}"]`;
    const own = here()?.querySelector(named) ?? [...document.querySelectorAll(`main ${named}`)].find((one) => !one.closest("[data-row]"));
    const does = go ? () => go.click() : own ? () => own.click() : press[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
}
