// Times as the viewer wants them: how long ago, by this machine's clock, or in UTC. The server has written them already.
const steps = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function ago(at, now = Date.now()) {
  const seconds = (now - at) / 1000;
  const [size, word] = steps.find(([size]) => Math.abs(seconds) >= size) ?? [1, "s"];
  const n = Math.floor(Math.abs(seconds) / size);
  return seconds >= 0 ? `${n} ${word} ago` : `in ${n} ${word}`;
}

const forms = { clock: { hour: "2-digit", minute: "2-digit", hour12: false }, day: { day: "numeric", month: "short" }, full: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false } };
const formats = new Map();

// An instant as an axis has it: `14:05` or `19 Nov`.
export function mark(at, form) {
  const zone = document.body.dataset.time === "utc" ? "UTC" : undefined;
  const name = `${form} ${zone}`;
  if (!formats.has(name)) formats.set(name, new Intl.DateTimeFormat("en-GB", { ...forms[form], timeZone: zone }));
  return formats.get(name).format(at);
}

export function times(within = document) {
  const how = document.body.dataset.time;
  for (const one of within.querySelectorAll("text[data-at]")) {
    const text = mark(Number(one.dataset.at), one.dataset.form);
    if (one.textContent !== text) one.textContent = text;
  }
  for (const one of within.querySelectorAll("time[datetime]")) {
    const at = new Date(one.dateTime);
    const text = one.dataset.form ? mark(at, one.dataset.form) : how === "local" ? local.format(at) : how === "utc" ? one.title.slice(0, 19) + "Z" : ago(at);
    if (one.textContent !== text) one.textContent = text;
  }
}
