// A word that goes by itself.
export function toast(text, tone = "") {
  const one = document.createElement("div");
  one.className = tone ? `toast tone-${tone}` : "toast";
  one.textContent = text;
  const room = document.getElementById("toasts");
  room.append(one);
  while (room.children.length > 3) room.firstChild.remove();
  setTimeout(() => one.remove(), tone === "bad" ? 9000 : 4000);
}
