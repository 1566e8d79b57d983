import { ask, call } from "../frame/act.js";
import { charts } from "../frame/charts.js";
import { refresh } from "../frame/live.js";
import { operate } from "../frame/operation.js";
import { element, field } from "../failures/replaying.js";
import { toast } from "../frame/toast.js";

const number = (n) => n.toLocaleString("en");

// How many may wait; nothing typed lifts it.
async function bound({ bound: queue, most }) {
  const input = element("input", { type: "number", min: 0, max: 2147483647, value: most, inputmode: "numeric" });
  const more = field("Waiting jobs at most", input, "empty: no limit");
  if (!(await ask({ title: `Limit the depth of ${queue}?`, text: "While that many are waiting, further enqueues are refused with QueueFull.", yes: "Set it", more }))) return;
  const told = await call("PUT", `queues/${encodeURIComponent(queue)}/max-depth`, { maxDepth: input.value === "" ? null : Number(input.value) });
  if (told === null) return;
  toast(input.value === "" ? `${queue} has no depth limit` : `At most ${number(Number(input.value))} may wait in ${queue}`);
  refresh();
}

// Cancel what waits: counted first, then asked, then done in the background.
async function purge(button) {
  const { purge: queue, waiting } = button.dataset;
  const order = { action: "cancel", filter: { queue, status: waiting.split(",") } };
  button.setAttribute("aria-busy", "true");
  const told = await call("POST", "queue/bulk", { ...order, dryRun: true });
  button.removeAttribute("aria-busy");
  if (told === null) return;
  if (!told.matched) return toast(`Nothing waits in ${queue}`);
  const text = `${number(told.matched)}${told.exact ? "" : " or more"} jobs that are queued, scheduled, blocked or waiting for a retry are cancelled. Running jobs go on. Cancelled jobs can be queued again.`;
  if (await ask({ title: `Cancel all waiting in ${queue}?`, text, yes: `Cancel ${number(told.matched)}`, danger: true })) await operate(`Cancelling all in ${queue}`, "queue/bulk", order);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-bound],[data-purge]");
  if (!button || button.hasAttribute("aria-busy")) return;
  if (button.dataset.bound !== undefined) bound(button.dataset);
  else purge(button);
});
charts();
