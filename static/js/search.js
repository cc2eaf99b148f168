// The box in the header: what is found while somebody types. It is a form without a script; here it becomes a combobox
// whose list the server writes. What was asked before is given up, so an old answer never replaces a newer one.
// Ctrl+K makes it the command palette: then it offers first what the page can do and where one can go.

const REST = 200; // milliseconds without a key, after which it is asked
const LONGEST = 200; // characters that are looked for while somebody types; more are somebody's log, pasted
const WARM = 60_000; // milliseconds for which the server needs no other hint that somebody is about to search

let asking = null;
let resting = 0;
let warmed = -WARM;
let commands = null; // of the palette, null where the box only searches
let places = null; // the answer with the pages, views and desks that the palette leads to
let from = null; // the element that had focus before the palette
let sought = ""; // the text in the box before it

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

// --- the command palette ---

const SHOWN = 12; // commands at a time
const COMMANDS = "button[type=submit], button[aria-haspopup], a.button, summary, select[data-autosubmit] option:not(:checked)";
const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const tidy = (text) => text.replace(/\s+/g, " ").trim();

function label(element) {
  const as = element.closest("[data-commands-as]")?.dataset.commandsAs;
  const own = tidy(element.getAttribute("aria-label") || element.innerText || element.textContent);
  return as && own ? `${as}: ${own}` : own;
}

/** What the page offers by buttons now, and the links of the header: a button that is added is a command by itself. */
function collect() {
  const found = new Map();
  const add = (element, group) => {
    const shown = element.tagName === "OPTION" ? element.closest("select") : element;
    if (!shown.checkVisibility() || element.disabled || element.matches("[data-inert], [aria-disabled=true], [data-no-command]") || element.closest("[data-no-command]")) return;
    const text = label(element);
    if (text && !found.has(text)) found.set(text, { text, group, element });
  };
  for (const element of document.querySelectorAll("#main :is(" + COMMANDS + ")")) add(element, gettext("On this page"));
  for (const link of document.querySelectorAll("nav a[href], #user-menu .option")) {
    const text = tidy(link.textContent);
    const group = link.matches("nav a") ? gettext("Go to") : gettext("Account");
    if (text && !found.has(text) && !link.closest("#main")) found.set(text, { text, group, element: link });
  }
  return [...found.values()];
}

function fits(command, words) {
  const own = folded(`${command.text} ${command.note || ""}`).split(/[^\p{L}\p{N}]+/u);
  return words.every((word) => own.some((one) => one.startsWith(word)));
}

/** The first of each group where nothing is typed, else all that have words that begin so. */
function offerCommands(text) {
  const place = list().querySelector("[data-commands]");
  place.replaceChildren();
  const words = folded(text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  if (!commands || text && !words.length) return;
  const groups = new Map();
  let count = 0;
  for (const command of commands) {
    if (!fits(command, words) || count >= SHOWN && words.length) continue;
    if (!groups.has(command.group)) groups.set(command.group, []);
    if (!words.length && groups.get(command.group).length >= SHOWN / 2) continue;
    groups.get(command.group).push(command);
    count += 1;
  }
  for (const [name, members] of groups) {
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", name);
    const heading = document.createElement("p");
    heading.className = "search-kind";
    heading.setAttribute("role", "presentation");
    heading.textContent = name;
    group.append(heading, ...members.map((command, n) => commandOption(command, `${name}-${n}`.replace(/\W+/g, "-"))));
    place.append(group);
  }
  choose(options()[0]);
}

function commandOption(command, id) {
  const option = document.createElement("div");
  option.className = "option";
  option.id = `command-${id.toLowerCase()}`;
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  const text = document.createElement("bdi");
  text.textContent = command.text;
  option.append(text);
  if (command.note) {
    const note = document.createElement("span");
    note.className = "option-note";
    note.textContent = command.note;
    option.append(note);
  }
  option.addEventListener("click", () => run(command));
  return option;
}

function run({ text, element: collected, href }) {
  close();
  if (href) {
    location.assign(href);
    return;
  }
  // An answer that arrived meanwhile may have replaced this part of the page.
  const element = collected.isConnected ? collected : collect().find((one) => one.text === text)?.element;
  if (!element) return;
  if (element.tagName === "OPTION") {
    const select = element.closest("select");
    select.value = element.value;
    select.form.requestSubmit();
    return;
  }
  box().blur();
  if (element.matches("summary")) element.focus();
  element.click();
}

/** The pages of the desk, the views and the desks: asked for once for each page. */
async function learn() {
  places ??= fetch(box().dataset.commands, { headers: { Accept: "text/html" } }).then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)));
  try {
    const mine = commands;
    const page = new DOMParser().parseFromString(await places, "text/html");
    if (!mine || commands !== mine) return; // closed, or opened again, meanwhile
    for (const link of page.querySelectorAll("[data-command]")) {
      commands.push({ text: tidy(link.textContent), group: link.dataset.command, note: link.dataset.note, href: link.getAttribute("href") });
    }
    const kept = active()?.id; // the option that somebody has moved to meanwhile
    offerCommands(typed());
    choose(options().find((option) => option.id === kept) || options()[0]);
  } catch {
    places = null; // out of reach now: the page's own commands are there, and the next time it is asked again
  }
}

function openPalette() {
  from = document.activeElement === box() ? from : document.activeElement;
  if (!commands) sought = box().value;
  commands = collect();
  box().value = "";
  box().placeholder = gettext("Command or search");
  box().focus();
  changed();
  learn();
}

function closePalette() {
  if (!commands) return;
  commands = null;
  list().querySelector("[data-commands]").replaceChildren();
  box().placeholder = gettext("Search");
  box().value = sought;
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.isComposing || !box()) return;
  event.preventDefault(); // browsers have their own search on it
  event.stopPropagation();
  if (!document.querySelector("dialog[open]")) openPalette();
}, true);

// --- what is found while somebody types ---

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
  closePalette();
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
    option.hidden = !text || scoped && !here;
    if (option.hidden) continue;
    const address = new URL(scoped ? here.href : box().form.action);
    // As the form would, but without the filters of a page of results: the other option keeps them.
    for (const [name, value] of scoped ? [] : new FormData(box().form)) {
      if (!here || name === "order") address.searchParams.set(name, value);
    }
    if (!scoped) option.querySelector("[data-means]").textContent = here ? gettext("Search the whole desk for") : gettext("Search for");
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
  const kept = active();
  place.replaceChildren(...(found ? found.childNodes : []));
  choose(options().find((option) => option === kept || option.href && option.href === kept?.href) || null);
  const count = place.querySelectorAll("[role=option]").length;
  const region = document.getElementById("announce");
  if (region && isOpen()) region.textContent = count ? ngettext("{num} suggestion", "{num} suggestions", count) : gettext("No suggestions");
}

function changed() {
  forget();
  const text = typed();
  offerCommands(text);
  if (!text && !commands) {
    close();
    list().querySelector("[data-suggested]").replaceChildren();
    return;
  }
  offerSearches(text);
  open();
  if (!text || text.length > LONGEST) show(null);
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
    if (commands) from?.focus?.();
    close();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (!typed() && !isOpen()) return;
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
  if (event.target.id !== "search-form") return;
  sought = box().value; // is sent
  close();
});

// A page that comes back from the history cache has its list as it was left.
window.addEventListener("pageshow", () => {
  if (!box()) return;
  equip(box());
  close();
});
