// Completion of a search: what could come next is asked of the server, and shown below the field.
import { parsed } from "./live.js";

export function search() {
  const input = document.getElementById("search");
  if (!input?.form.dataset.suggest) return;
  const list = document.getElementById("suggestions");
  const wrong = document.getElementById("suggestions-wrong");
  let timer = 0, asked = 0, at = -1;
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", "suggestions"]]) input.setAttribute(name, value);

  const options = () => [...list.children];

  function close() {
    clearTimeout(timer);
    asked++;
    at = -1;
    list.hidden = wrong.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(next) {
    options()[at]?.removeAttribute("aria-selected");
    at = next;
    const one = options()[at];
    one?.setAttribute("aria-selected", "true");
    one?.scrollIntoView({ block: "nearest" });
    if (one) input.setAttribute("aria-activedescendant", one.id);
    else input.removeAttribute("aria-activedescendant");
  }

  function take(one) {
    const { text, start, end } = one.dataset;
    const goesOn = /[:.=<>]$/.test(text);
    const before = input.value.slice(0, Number(start)) + text + (goesOn ? "" : " ");
    input.value = before + input.value.slice(Number(end)).replace(goesOn ? /^$/ : /^ /, "");
    input.setSelectionRange(before.length, before.length);
    input.focus();
    ask();
  }

  async function ask() {
    const mine = ++asked;
    const words = new URLSearchParams({ q: input.value, at: String(input.selectionStart ?? input.value.length) });
    try {
      const answer = await fetch(`${input.form.dataset.suggest}?${words}`, { headers: { "X-Windlass-Regions": "shared" } });
      if (!answer.ok || mine !== asked) return;
      const told = parsed(await answer.text());
      if (mine !== asked || document.activeElement !== input) return;
      list.replaceChildren(...told.querySelectorAll("[role=option]"));
      wrong.textContent = told.querySelector(".suggested-wrong")?.textContent ?? "";
    } catch {
      return;
    }
    at = -1;
    input.removeAttribute("aria-activedescendant");
    list.hidden = !list.children.length;
    wrong.hidden = !wrong.textContent;
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  const soon = () => { clearTimeout(timer); timer = setTimeout(ask, 100); };
  input.addEventListener("input", soon);
  input.addEventListener("focus", soon);
  input.addEventListener("blur", close);
  list.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const one = event.target.closest("[role=option]");
    if (one) take(one);
  });
  input.addEventListener("keydown", (event) => {
    const open = !list.hidden || !wrong.hidden, n = options().length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) ask();
      else choose((at + (event.key === "ArrowDown" ? 1 : at < 0 ? 0 : -1) + n) % n);
    } else if ((event.key === "Enter" || event.key === "Tab") && at >= 0 && open) {
      event.preventDefault();
      take(options()[at]);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
}
