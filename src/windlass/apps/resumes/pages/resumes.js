// Resumes: the form is sent, its score is shown with its reasons, and the file is offered.
import { make, problem } from "../frame/form.js";
import { refresh } from "../frame/live.js";

const form = document.getElementById("tailor");
const at = (id) => document.getElementById(id);

function part(one) {
  const cell = (name, label, text, kind) => make(name, { ...(label && { "data-label": label }), ...(kind && { class: kind }) }, text);
  const bar = make("meter", { min: 0, max: one.weight, value: one.points, "aria-label": `${one.name}: ${one.points} of ${one.weight}` });
  const of = cell("td", "Of its weight", "");
  of.append(bar);
  const head = make("th", { scope: "row" }, one.name);
  return make("tr", {}, head, cell("td", "Points", `${one.points.toFixed(1)} / ${one.weight}`, "num"), of, cell("td", "Why", one.reason));
}

function words(id, some, tone) {
  at(id).replaceChildren(...(some.length ? some.map((one) => make("span", { class: one.needed ? tone : "" }, one.word + (one.needed ? " (must)" : ""))) : ["–"]));
}

function show(told) {
  const score = told.atsScore;
  const before = told.atsScoreBefore.total;
  document.querySelector(".tailored-total").replaceChildren(make("strong", {}, score.total.toFixed(0)), ` of 100, tailored. As it was sent: ${before.toFixed(0)}.`);
  at("tailored-parts").replaceChildren(...score.parts.map(part));
  words("tailored-matched", score.keywords.filter((one) => one.matched), "tone-good");
  words("tailored-missing", score.keywords.filter((one) => !one.matched), "tone-bad");
  at("tailored-advice").replaceChildren(...score.advice.map((one) => make("li", {}, one)));
  const bytes = told.content === null ? Uint8Array.from(atob(told.contentBase64), (one) => one.charCodeAt(0)) : told.content;
  const file = at("tailored-file");
  if (file.href.startsWith("blob:")) URL.revokeObjectURL(file.href);
  file.href = URL.createObjectURL(new Blob([bytes], { type: told.mediaType }));
  file.download = told.fileName;
  file.textContent = `Download ${told.format.toUpperCase()}`;
  at("tailored").hidden = false;
  at("tailored").scrollIntoView({ block: "nearest" });
  refresh(); // it was used once more
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = form.querySelector(".form-told");
  const button = form.querySelector("button");
  const { jobDescription, companyName, format } = Object.fromEntries(new FormData(form));
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  said.hidden = true;
  try {
    const body = JSON.stringify({ processingId: form.dataset.resume, jobDescription, companyName: companyName || null, format });
    const answer = await fetch(`${document.body.dataset.api}resumes/generate`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const told = await answer.json();
    if (answer.ok) show(told);
    else throw new Error(problem(told));
  } catch (error) {
    said.textContent = error.message;
    said.hidden = false;
  }
  button.disabled = false;
  button.removeAttribute("aria-busy");
});

// Found while somebody waits: what was not there as the page was made comes with the page.
if (!form && document.querySelector("[data-live=resume] [role=status]")) {
  new MutationObserver((_, watch) => {
    if (document.querySelector("[data-live=resume] .tiles")) watch.disconnect(), location.reload();
  }).observe(document.querySelector("main"), { childList: true, subtree: true });
}
