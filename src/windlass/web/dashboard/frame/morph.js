// Make one element like another, changing only what differs: the focus, what is unfolded and what is typed stay.
const keyOf = (node) => (node.nodeType === 1 ? node.dataset.key ?? node.id ?? "" : "") || "";
const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
const KEPT = new Set(["open", "aria-selected", "data-here", "aria-busy"]);

function attributes(old, next) {
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
}

export function morph(old, next) {
  if (old.nodeType === 3) return void (old.data !== next.data && (old.data = next.data));
  if (old.nodeType !== 1 || old.hasAttribute("data-kept")) return; // a script's own
  attributes(old, next);
  if (old.nodeName === "INPUT" || old.nodeName === "TEXTAREA" || old.nodeName === "TIME") {
    if (old.nodeName === "TIME") old.textContent = next.textContent;
    return;
  }
  const keyed = new Map();
  for (const child of old.childNodes) if (keyOf(child)) keyed.set(`${child.nodeName} ${keyOf(child)}`, child);
  let at = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const found = keyOf(wanted) ? keyed.get(`${wanted.nodeName} ${keyOf(wanted)}`) : at && same(at, wanted) ? at : null;
    if (!found) {
      old.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    morph(found, wanted);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}
