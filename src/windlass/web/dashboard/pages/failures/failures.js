import { ask } from "../frame/act.js";
import { operate } from "../frame/operation.js";
import { element, field, replays } from "./replaying.js";

// Discarding: what is thrown away is offered as a file first.
async function discard({ discard: fingerprint, name }) {
  const filter = { fingerprint };
  const file = element("a", { class: "button", href: `${document.body.dataset.api}queue/export?format=json&fingerprint=${fingerprint}`, download: `failures-${fingerprint}.json` }, "Save them as a file first");
  const why = element("input", { type: "text", maxlength: 200, autocomplete: "off" });
  const more = element("div", { class: "stack" }, file, field("Why", why, "goes into the audit trail"));
  const yes = await ask({ title: `Discard ${name}?`, text: "The failed jobs of this group are deleted, with their history. That cannot be undone.", yes: "Discard them", danger: true, more });
  if (yes) await operate(`Discarding ${name}`, "queue/bulk", { action: "delete", filter, ...(why.value && { reason: why.value }) });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-discard]");
  if (button) discard(button.dataset);
});
replays();
