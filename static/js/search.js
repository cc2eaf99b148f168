// The box in the header: what is found while somebody types. It is a form without a script; here it becomes a combobox
// whose list the server writes. What was asked before is given up, so an old answer never replaces a newer one.

const REST = 200; // milliseconds without a key, after which it is asked
const LONGEST = 200; // characters that are looked for while somebody types; more are somebody's log, pasted
const WARM = 60_000; // milliseconds for which the server needs no other hint that somebody is about to search

let asking = null;
let resting = 0;
let warmed = -WARM;

const box = () => document.getElementById("search-box");
const panel = () => document.getElementById("search-panel");
const list = () => document.getElementById("search-options");
const options = () => [...list().querySelectorAll("[role=option]")].filter((option) => !option.hidden);
const active = () => list().querySelector("[aria-selected=true]");
const isOpen = () => !panel().hidden;

/** The text without which nothing is asked, as the server sees it. */
const typed = () => box().value.trim();

function equip(input) {
  if (input.hasAttribute("role")) return;
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", "search-options");
  input.setAttribute("aria-expanded", "false");
}

function forget() {
  clearTimeout(resting);
  asking?.abort();
  asking = null;
}

function close() {
  forget();
  choose(null);
  panel().hidden = true;
  box().setAttribute("aria-expanded", "false");
}

function open() {
  panel().hidden = false;
  box().setAttribute("aria-expanded", "true");
}

function choose(option) {
  active()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) box().setAttribute("aria-activedescendant", option.id);
  else box().removeAttribute("aria-activedescendant");
}

function move(step) {
  const all = options();
  const at = all.indexOf(active());
  // Beside the options the box itself is a stop: there Enter searches for what was typed.
  const next = (at + 1 + step + all.length + 1) % (all.length + 1);
  choose(next ? all[next - 1] : null);
}

/** The options that need no answer: everything that is found, and what is found in the list that the page shows. */
function offerSearches(text) {
  const here = document.querySelector("[data-search-scope]");
  for (const option of list().querySelectorAll("[data-searches]")) {
    const scoped = option.dataset.searches === "here";
    option.hidden = scoped && !here;
    if (option.hidden) continue;
    const address = new URL(scoped ? here.href : box().form.action);
    // As the form would, but without the filters of a page of results: the other option keeps them.
    for (const [name, value] of scoped ? [] : new FormData(box().form)) {
      if (!here || name === "order") address.searchParams.set(name, value);
    }
    if (!scoped) option.querySelector("[data-means]").textContent = here ? "Search the whole desk for" : "Search for";
    address.searchParams.set("q", text);
    option.href = address.href;
    option.querySelector("[data-typed]").textContent = text;
  }
}

async function ask(text) {
  const mine = new AbortController();
  asking = mine;
  const address = new URL(box().dataset.suggest, location.href);
  address.searchParams.set("q", text);
  try {
    const answer = await fetch(address, { signal: mine.signal, headers: { Accept: "text/html" } });
    if (answer.status === 429) {
      resting = setTimeout(() => ask(text), 1000 * Number(answer.headers.get("Retry-After") || 1));
      return;
    }
    const page = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
    if (asking !== mine || typed() !== text) return;
    show(page.querySelector("[data-suggestions]"));
  } catch {
    // Given up, or out of reach: what was typed can be searched for all the same, and then it is said what is wrong.
  }
}

function show(found) {
  const place = list().querySelector("[data-suggested]");
  const kept = active()?.href;
  place.replaceChildren(...(found ? found.childNodes : []));
  choose(options().find((option) => option.href === kept) || null);
  const count = place.querySelectorAll("[role=option]").length;
  const region = document.getElementById("announce");
  if (region && isOpen()) region.textContent = count === 1 ? "1 suggestion" : `${count || "No"} suggestions`;
}

function changed() {
  forget();
  const text = typed();
  if (!text) {
    close();
    list().querySelector("[data-suggested]").replaceChildren();
    return;
  }
  offerSearches(text);
  open();
  if (text.length > LONGEST) show(null);
  else resting = setTimeout(() => ask(text), REST);
}

document.addEventListener("input", (event) => {
  if (event.target === box() && !event.isComposing) changed();
});

document.addEventListener("compositionend", (event) => {
  if (event.target === box()) changed();
});

document.addEventListener("focusin", (event) => {
  if (event.target !== box()) return;
  equip(event.target);
  if (event.target.value || performance.now() - warmed < WARM) return;
  warmed = performance.now();
  fetch(event.target.dataset.suggest, { headers: { Accept: "text/html" } }).catch(() => {});
});

document.addEventListener("focusout", (event) => {
  const form = event.target.closest?.("#search-form");
  if (form && isOpen() && !(event.relatedTarget && form.contains(event.relatedTarget))) close();
});

document.addEventListener("pointerdown", (event) => {
  if (box() && isOpen() && !event.target.closest?.("#search-form")) close();
});

// Focus stays in the box, whatever of the list is pressed.
document.addEventListener("mousedown", (event) => {
  if (event.target.closest?.("#search-panel")) event.preventDefault();
});

// Before the keys of pages: Esc closes the list first, and leaves the box when it is pressed again. What was typed stays.
document.addEventListener("keydown", (event) => {
  if (event.target !== box() || !box() || event.isComposing) return;
  if (event.key === "Escape") {
    event.preventDefault();
    if (!isOpen()) return;
    event.stopPropagation();
    close();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (!typed()) return;
    event.preventDefault();
    if (isOpen()) move(event.key === "ArrowDown" ? 1 : -1);
    else changed();
  } else if (event.key === "Enter" && isOpen() && active()) {
    event.preventDefault();
    const { ctrlKey, metaKey, shiftKey } = event;
    active().dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey }));
    close();
  }
}, true);

document.addEventListener("submit", (event) => {
  if (event.target.id === "search-form") close();
});

// A page that comes back from the history cache has its list as it was left.
window.addEventListener("pageshow", () => {
  if (!box()) return;
  equip(box());
  close();
});
