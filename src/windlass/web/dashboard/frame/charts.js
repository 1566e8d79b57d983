// Charts that share an axis of time: pointing and arrow keys tell the figures of a step in all of them, dragging (or Shift
// and arrows) zooms in, a click (or Enter) shows the jobs behind it.
import { mark } from "./time.js";

const now = { n: null, from: null, on: null, held: false };
const all = () => [...document.querySelectorAll("[data-chart]")];
const count = (chart) => Number(chart.dataset.n);
const legend = (chart) => [...chart.querySelectorAll(".legend [data-v]")];
const values = (line) => line.dataset.v.split(" ").map((one) => (one === "-" ? null : Number(one)));

function told(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "ms") return value < 100 ? `${Math.round(value)} ms` : value < 6e4 ? `${(value / 1e3).toFixed(1)} s` : value < 36e5 ? `${Math.floor(value / 6e4)} m ${Math.floor((value % 6e4) / 1e3)} s` : `${(value / 36e5).toFixed(1)} h`;
  for (const [bound, word] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) if (value >= bound) return `${(value / (word === "k" ? 1e3 : bound)).toFixed(1)}${word}`;
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}

const begin = (chart, n) => Number(chart.dataset.first) + n * Number(chart.dataset.step);
const instant = (ms) => new Date(ms).toISOString().replace(".000Z", "Z");

function when(chart, from, to) {
  const [first, last] = [begin(chart, Math.min(from, to)), begin(chart, Math.max(from, to) + 1)];
  const day = Date.now() - first > 72e6 ? `${mark(first, "day")} ` : "";
  return `${day}${mark(first, "clock")} – ${mark(last, "clock")}`;
}

function show() {
  for (const chart of all()) {
    const scan = chart.querySelector(".scan");
    if (!scan) continue;
    const n = now.n === null ? null : Math.min(now.n, count(chart) - 1);
    const from = now.from ?? n;
    scan.toggleAttribute("data-on", n !== null);
    for (const line of legend(chart)) {
      const room = line.querySelector("b") ?? line.appendChild(document.createElement("b"));
      room.dataset.rest ??= room.textContent;
      room.textContent = n === null ? room.dataset.rest : told(values(line)[n], line.dataset.unit);
    }
    if (n === null) continue;
    const wide = 100 / count(chart);
    scan.style.setProperty("--at", `${(n + 0.5) * wide}%`);
    scan.style.setProperty("--left", `${Math.min(n, from) * wide}%`);
    scan.style.setProperty("--wide", `${(Math.abs(n - from) + 1) * wide}%`);
    scan.toggleAttribute("data-right", n > count(chart) * 0.7);
    scan.firstChild.textContent = when(chart, from, n);
    scan.setAttribute("aria-valuenow", n);
    scan.setAttribute("aria-valuetext", `${when(chart, from, n)}: ${legend(chart).map((line) => line.innerText.trim().replace(/\s+/g, " ")).join(", ")}`);
  }
}

const place = (scan, event) => {
  const box = scan.getBoundingClientRect();
  const chart = scan.closest("[data-chart]");
  return Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * count(chart)), 0), count(chart) - 1);
};

function zoom(chart) {
  const [a, b] = [Math.min(now.from, now.n), Math.max(now.from, now.n) + 1];
  location.assign(chart.dataset.zoom.replace("FROM", instant(begin(chart, a))).replace("UNTIL", instant(begin(chart, b))));
}

// Which of its series or rows lies at that height, 0 below and 1 above.
function pointed(chart, n, high) {
  const lines = legend(chart);
  if (chart.dataset.chart === "heat") return { query: chart.dataset.rows.split("|")[Math.floor(high * Number(chart.dataset.most))] ?? "", href: "" };
  const wanted = high * Number(chart.dataset.most);
  let sum = 0;
  if (chart.dataset.chart === "stacked") return (lines.find((line) => wanted <= (sum += values(line)[n] ?? 0)) ?? { dataset: {} }).dataset;
  const least = Number(chart.dataset.least);
  const height = (value) => (least ? Math.log(Math.max(value, least) / least) / Math.log(Number(chart.dataset.most) / least) : value / Number(chart.dataset.most));
  const near = (line) => Math.abs((values(line)[n] === null ? Infinity : height(values(line)[n])) - high);
  return lines.reduce((best, line) => (near(line) < near(best) ? line : best), lines[0])?.dataset ?? {};
}

function open(chart, n, high = null) {
  const { query = "", href = "" } = high === null ? {} : pointed(chart, n, high);
  const bounds = chart.dataset.query.replace("FROM", instant(begin(chart, n))).replace("UNTIL", instant(begin(chart, n + 1)));
  if (chart.dataset.jobs) location.assign(chart.dataset.jobs.replace("QUERY", encodeURIComponent(`${query} ${bounds}`.trim())));
  else if (href) location.assign(href);
}

function clear() {
  now.n = now.from = now.on = null;
  now.held = false;
  show();
}

const keys = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -1e9, End: 1e9 };

function press(event) {
  const chart = event.target.closest("[data-chart]");
  const by = keys[event.key];
  if (by !== undefined) {
    const before = now.n ?? count(chart) - 1;
    now.from = event.shiftKey ? now.from ?? before : null;
    now.n = now.n === null && !event.shiftKey && Math.abs(by) === 1 ? before : Math.min(Math.max(before + by, 0), count(chart) - 1);
    show();
  } else if (event.key === "Enter" && now.n !== null) {
    if (now.from !== null && now.from !== now.n) zoom(chart);
    else open(chart, now.n);
  } else if (event.key === "Escape" && now.n !== null) clear();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function ready(scan) {
  const chart = scan.closest("[data-chart]");
  scan.setAttribute("aria-valuemax", count(chart) - 1);
  if (scan.tabIndex === 0) return;
  const label = document.createElement("span");
  label.className = "scan-when";
  label.setAttribute("aria-hidden", "true");
  scan.append(label);
  const attributes = { tabindex: 0, role: "slider", "aria-label": `${scan.dataset.label}, step by step`, "aria-valuemin": 0, "aria-valuenow": count(chart) - 1, "aria-valuetext": "arrow keys tell the figures of a step" };
  for (const [name, value] of Object.entries(attributes)) scan.setAttribute(name, value);
  scan.addEventListener("pointermove", (event) => {
    now.n = place(scan, event);
    show();
  });
  scan.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    scan.setPointerCapture(event.pointerId);
    now.n = now.from = place(scan, event);
    now.held = true;
    show();
  });
  scan.addEventListener("pointerup", (event) => {
    if (!now.held) return;
    now.held = false;
    const box = scan.getBoundingClientRect();
    if (now.from !== now.n) zoom(scan.closest("[data-chart]"));
    else open(scan.closest("[data-chart]"), now.n, Math.min(Math.max(1 - (event.clientY - box.top) / box.height, 0), 0.999));
  });
  scan.addEventListener("pointercancel", clear);
  scan.addEventListener("pointerleave", () => now.held || scan === document.activeElement || clear());
  scan.addEventListener("blur", clear);
  scan.addEventListener("keydown", press);
}

export function charts() {
  const begin = () => {
    for (const scan of document.querySelectorAll(".scan")) ready(scan);
    for (const room of document.querySelectorAll(".legend b")) delete room.dataset.rest;
    show();
  };
  document.addEventListener("windlass:fresh", begin);
  begin();
}
