// A word that goes by itself; with a link it stays longer.
export function toast(text, tone = "", link = null) {
  const one = document.createElement("div");
  one.className = tone ? `toast tone-${tone}` : "toast";
  one.textContent = text;
  if (link) {
    const leads = document.createElement("a");
    leads.href = link.href;
    leads.textContent = link.word;
    one.append(" ", leads);
  }
  const room = document.getElementById("toasts");
  room.append(one);
  while (room.children.length > 3) room.firstChild.remove();
  setTimeout(() => one.remove(), link ? 30000 : tone === "bad" ? 9000 : 4000);
}
