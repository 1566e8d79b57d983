// Imports: an order is made of the form; what was tried is imported.
import { toast } from "../frame/toast.js";

const api = document.body.dataset.api;
const base = document.body.dataset.base;

async function answered(path, options) {
  try {
    const answer = await fetch(api + path, options);
    const told = await answer.json();
    return { ok: answer.ok, status: answer.status, told };
  } catch {
    return { ok: false, status: 0, told: { detail: "The server cannot be reached: nothing was done, or its answer was lost" } };
  }
}

async function start(order, failed) {
  const { ok, status, told } = await answered("imports/xlsx", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order) });
  if (ok) location.assign(`${base}imports/${told.jobId}`);
  else if (status === 409 && told.existing) failed("The same was imported before. Choose “Also if it was imported before” to do it again.", told.existing);
  else failed(told.errors?.map((one) => `${one.at}: ${one.message}`).join("; ") || told.detail || told.title || "It was refused");
}

const form = document.getElementById("import-order");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const told = document.getElementById("import-told");
  const { upload, type, sheet } = form.dataset;
  const mapping = {};
  for (const one of form.querySelectorAll(".mapping select")) mapping[one.name] = one.value;
  const lacking = [...form.querySelectorAll(".mapping tr")].find((row) => row.querySelector(".needed") && !row.querySelector("select").value);
  if (lacking) {
    told.textContent = `Choose a column for ${lacking.querySelector("select").name}: it is required.`;
    told.hidden = false;
    lacking.querySelector("select").focus();
    return;
  }
  const order = { upload, type, mapping, ...(sheet && { sheetName: sheet }), dryRun: event.submitter?.name === "try", dates: form.elements.dates.value, atomic: Boolean(form.elements.atomic?.checked), force: form.elements.force.checked };
  event.submitter?.setAttribute("aria-busy", "true");
  await start(order, (text) => { told.textContent = text; told.hidden = false; });
  event.submitter?.removeAttribute("aria-busy");
});
const choose = document.getElementById("import-choose");
choose?.addEventListener("change", () => choose.requestSubmit());

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-import]");
  if (!button || button.hasAttribute("aria-busy")) return;
  button.setAttribute("aria-busy", "true");
  const { ok, told } = await answered(`queue/${button.dataset.import}`, {});
  if (ok) await start({ ...told.payload.order, type: button.dataset.type, filename: undefined, sha256: undefined, dryRun: false, force: true }, (text) => toast(text, "bad"));
  else toast(told.detail ?? "It was refused", "bad");
  button.removeAttribute("aria-busy");
});
