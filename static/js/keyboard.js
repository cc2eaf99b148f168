// Single-key shortcuts. Real focus moves to the row's own link, so a screen reader follows and Enter opens it.
// They can be switched off in the help dialog (WCAG 2.1.4), for people whose tools send single letters.

const OFF = "pooldesk.shortcuts.off";
const enabled = () => { try { return localStorage.getItem(OFF) !== "1"; } catch { return true; } };

let last = null;
let prefix = 0;

const rows = () => [...document.querySelectorAll("[data-row]")];

function currentRow(all) {
  const focused = document.activeElement?.closest?.("[data-row]");
  if (focused) return all.indexOf(focused);
  return last && last.isConnected ? all.indexOf(last) : -1;
}

function move(step) {
  const all = rows();
  if (!all.length) return false;
  const at = currentRow(all);
  const fresh = at < 0;
  const next = fresh ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
  last = all[next];
  const link = last.querySelector("[data-row-link]");
  link.focus({ preventScroll: true });
  last.scrollIntoView({ block: "nearest" });
  return true;
}

function lead(selector) {
  const link = document.querySelector(selector);
  if (link && !link.hidden && !link.closest("[hidden]")) link.click();
}

function toggle() {
  const all = rows();
  const row = all[currentRow(all)];
  row?.querySelector("input[type=checkbox]")?.click();
}

/** The ticket that a key is about: the page's own, the row with focus, or the only one that is selected. */
function subject() {
  const all = rows();
  const chosen = all.filter((row) => row.querySelector("input[name=tickets]:checked"));
  return all[currentRow(all)] || (chosen.length === 1 ? chosen[0] : null);
}

/** Opens the form that changes all selected tickets; false where fewer than two are. */
function changeSelected() {
  if (document.querySelectorAll("input[name=tickets]:checked").length < 2) return false;
  document.querySelector("[data-change-fields]")?.click();
  return true;
}

/** On a list, goes to the ticket that a key is about, and there on to `place`: a part of its address. */
function go(place) {
  const row = subject();
  if (!row?.querySelector("input[name=tickets]")) return;
  const [path, part] = place.split("#");
  const url = new URL(row.querySelector("[data-row-link]").href);
  url.pathname += path;
  url.hash = part || "";
  location.assign(url);
}

function focusOn(selector) {
  const element = document.querySelector(selector);
  element?.focus();
  element?.scrollIntoView({ block: "center" });
  return Boolean(element);
}

/** Puts the cursor into the composer. What was written as a note stays one; an empty box becomes what was asked for. */
function write({ internal }) {
  const box = document.querySelector("[data-reply] textarea");
  const note = document.querySelector("[data-reply] [name=internal]");
  if (!box) return false;
  if (note && note.checked !== internal && (internal || !box.value.trim())) note.click();
  return focusOn("[data-reply] textarea");
}

function status() {
  if (focusOn(".status-choice button:not([disabled], [data-inert])")) return;
  const row = subject();
  const box = row?.querySelector("input[name=tickets]");
  if (box && !document.querySelector("input[name=tickets]:checked")) box.click();
  focusOn(".bulk-actions button[name=to]:not([disabled])");
}

/** Opens a menu with the focus on it: the arrow keys walk its options, and a menu with a filter takes the focus there. */
function unfold(summary) {
  summary.focus();
  if (!summary.parentElement.open) summary.click();
}

function assign() {
  const summary = document.querySelector("#assign-menu > summary");
  if (summary) unfold(summary);
  else changeSelected() || go("assign/");
}

// Keys of a list lead to a ticket's page, and keys of any page to a form: the address says where in it.
const PLACES = { "#id_title": 1, "#id_tags": 1, "#quick-priority": 1, "#id_body": 1 };
function arrive() {
  if (location.hash === "#note") write({ internal: true });
  else if (PLACES[location.hash]) focusOn(location.hash);
}

function follow(name) {
  const link = document.querySelector(`[data-shortcut="${name}"]`);
  if (link?.matches("summary")) unfold(link);
  else link?.click();
  return Boolean(link);
}

const actions = {
  j: () => move(1) || lead("[data-next-ticket]"),
  k: () => move(-1) || lead("[data-previous-ticket]"),
  x: toggle,
  c: () => {
    const link = document.querySelector('[data-shortcut="c"]');
    if (link) location.assign(`${link.href}#id_title`);
  },
  a: assign,
  s: status,
  p: () => focusOn("#quick-priority") || changeSelected() || go("#quick-priority"),
  l: () => {
    const edit = document.querySelector("[data-edit]");
    if (edit) location.assign(`${edit.href}#id_tags`);
    else changeSelected() || go("edit/#id_tags");
  },
  // With something selected, a reply begins with it; composer.js takes the quote.
  r: () => !document.dispatchEvent(new CustomEvent("pooldesk:quote", { cancelable: true })) || write({ internal: false }) || go("#id_body"),
  n: () => write({ internal: true }) || go("#note"),
  z: () => document.querySelector("[data-undo] button")?.click(),
  "/": () => {
    const box = document.getElementById("search-box");
    box?.focus();
    box?.select();
  },
  m: () => follow("m") || go("merge/"),
  b: () => follow("b") || go("snooze/"),
  "!": () => follow("spam") || go("spam/"),
  "?": () => document.getElementById("help")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat && !"jk".includes(event.key)) return;
  if (event.target.closest?.("textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])")) return;
  if (document.querySelector("dialog[open]") || !enabled()) return;
  const key = event.key;
  if (key === "g") {
    prefix = Date.now();
    return;
  }
  const leads = /^[a-z]$/.test(key) && Date.now() - prefix < 1500 && follow(`g${key}`);
  prefix = 0;
  if (leads) {
    event.preventDefault();
    return;
  }
  const action = actions[key];
  if (!action) return;
  event.preventDefault();
  action();
});

// Who opens a row by a key and comes back finds the focus where it was: the page is loaded anew then.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-row-link]");
  if (link) history.replaceState({ ...history.state, row: event.detail ? null : link.getAttribute("href") }, "");
});

window.addEventListener("pageshow", (event) => {
  if (event.persisted || performance.getEntriesByType("navigation")[0]?.type !== "back_forward" || !history.state?.row) return;
  const link = [...document.querySelectorAll("[data-row-link]")].find((one) => one.getAttribute("href") === history.state.row);
  link?.focus({ preventScroll: true });
});

// Esc leaves a box, so that keys are shortcuts again; what was typed stays. Menus and dialogs close by it instead.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || !event.target.matches?.("textarea, input:not([type=checkbox], [type=radio])")) return;
  if (event.target.closest("dialog, details.menu")) return;
  event.target.blur();
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-shortcuts-switch]")) return;
  try { localStorage.setItem(OFF, event.target.checked ? "0" : "1"); } catch { /* private mode: stays on */ }
});

function showSwitch() {
  const box = document.querySelector("[data-shortcuts-switch]");
  if (box) box.checked = enabled();
}

showSwitch();
arrive();
document.addEventListener("htmx:afterSettle", showSwitch);
window.addEventListener("storage", showSwitch);
