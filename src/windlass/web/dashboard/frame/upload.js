// Files that are dropped or chosen: sent one after the other, each with its progress. The form is `ui.drop`; its other fields go along.
import { refresh } from "./live.js";
import { make, problem } from "./form.js";

const amount = (n) => (n < 1e6 ? `${Math.max(1, Math.round(n / 1e3)).toLocaleString("en")} kB` : `${(n / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB`);
const left = (seconds) => (seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`);

// Send one file to a path of the API: resolves to { ok, status, told }; `told` of what went wrong is a problem. `moved` hears
// of bytes and their total, `control.stop()` gives up.
export function send(path, file, { name = "file", fields = [], moved = () => {}, control = {}, method = "POST" } = {}) {
  const form = new FormData();
  for (const [key, value] of fields) form.append(key, value);
  form.append(name, file);
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    const failed = (detail) => done({ ok: false, status: request.status, told: { detail } });
    request.open(method, document.body.dataset.api + path);
    request.upload.addEventListener("progress", (event) => moved(event.loaded, event.total || file.size));
    request.addEventListener("error", () => failed("The server cannot be reached, or refused the file while it was sent"));
    request.addEventListener("abort", () => failed("Stopped: nothing of it was kept"));
    request.addEventListener("load", () => {
      const ok = request.status >= 200 && request.status < 300;
      try {
        done({ ok, status: request.status, told: request.responseText ? JSON.parse(request.responseText) : {} });
      } catch {
        failed(`The server answered ${request.status}`);
      }
    });
    control.stop = () => request.abort();
    request.send(form);
  });
}

// One line of the list below the form: the name, a bar, what is told of it, and a button that stops it.
function line(file) {
  const bar = make("progress", { max: 1, value: 0, "aria-label": file.name });
  const told = make("span", { class: "muted small" }, "Waits its turn");
  const stop = make("button", { type: "button", class: "button small" }, "Stop");
  const name = make("strong", { class: "drop-name" }, file.name);
  return { row: make("li", { class: "drop-line" }, name, told, stop, bar), name, bar, told, stop };
}

async function one(form, file, shown) {
  const { drop: path, name, go, most } = form.dataset;
  const say = (text, bad) => {
    shown.told.textContent = text;
    shown.told.className = bad ? "tone-bad drop-told" : "muted small";
    if (bad) shown.bar.hidden = true;
  };
  if (most && file.size > Number(most)) {
    shown.stop.remove();
    return say(`It has ${amount(file.size)}; at most ${amount(Number(most))} are taken.`, true), null;
  }
  const began = performance.now();
  const control = {};
  shown.stop.addEventListener("click", () => control.stop?.());
  const moved = (done, of) => {
    shown.bar.value = of ? done / of : 0;
    const rate = done / Math.max(0.2, (performance.now() - began) / 1000);
    say(done < of ? `${amount(done)} of ${amount(of)}, ${left((of - done) / rate)} left` : "Sent. The server looks at it …");
  };
  const fields = [...new FormData(form)].filter(([, value]) => typeof value === "string");
  say("Begins");
  const { ok, status, told } = await send(path, file, { name, fields, moved, control });
  shown.stop.remove();
  if (!ok) return say(status === 401 ? "Your session is over: reload the page to sign in." : problem(told), true), null;
  shown.bar.hidden = true;
  say("Sent");
  const there = go && document.body.dataset.base + go.replace(/\{(\w+)\}/g, (_, member) => encodeURIComponent(told[member] ?? ""));
  if (there) shown.name.replaceChildren(make("a", { href: there }, file.name));
  return { told, there };
}

async function all(form, files) {
  if (!files.length || form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  const many = form.querySelector("input[type=file]").multiple;
  const lines = (many ? [...files] : [files[0]]).map((file) => ({ file, shown: line(file) }));
  form.querySelector(".drop-list").replaceChildren(...lines.map(({ shown }) => shown.row));
  const answers = [];
  for (const { file, shown } of lines) {
    const answer = await one(form, file, shown);
    if (answer) answers.push(answer);
  }
  form.ariaBusy = "false";
  form.querySelector(".drop-end").textContent = `${answers.length} of ${lines.length} sent`;
  form.querySelector("input[type=file]").value = "";
  form.dispatchEvent(new CustomEvent("windlass:sent", { bubbles: true, detail: answers.map((answer) => answer.told) }));
  if (!many && answers[0]?.there) location.assign(answers[0].there);
  else if (answers.length) refresh();
}

export function uploads() {
  for (const form of document.querySelectorAll("form[data-drop]")) {
    const over = (event) => event.preventDefault();
    for (const kind of ["dragenter", "dragover"]) form.addEventListener(kind, (event) => { over(event); form.dataset.over = ""; });
    for (const kind of ["dragleave", "drop"]) form.addEventListener(kind, (event) => { over(event); delete form.dataset.over; });
    form.addEventListener("drop", (event) => all(form, event.dataTransfer.files));
    form.addEventListener("submit", over);
    const input = form.querySelector("input[type=file]");
    input.addEventListener("change", () => all(form, input.files));
    if (input.files.length) all(form, input.files); // chosen before this script was there
  }
}
