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

function follow(name) {
  const link = document.querySelector(`[data-shortcut="${name}"]`);
  if (link) link.click();
  return Boolean(link);
}

const actions = {
  j: () => move(1) || lead("[data-next-ticket]"),
  k: () => move(-1) || lead("[data-previous-ticket]"),
  x: toggle,
  c: () => follow("c"),
  r: () => {
    const box = document.querySelector("[data-reply] textarea");
    if (!box) return;
    box.focus();
    box.scrollIntoView({ block: "center" });
  },
  "/": () => {
    const box = document.getElementById("search-box");
    box?.focus();
    box?.select();
  },
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
  if ("qd".includes(key) && Date.now() - prefix < 1500) {
    prefix = 0;
    event.preventDefault();
    follow(`g${key}`);
    return;
  }
  prefix = 0;
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
document.addEventListener("htmx:afterSettle", showSwitch);
window.addEventListener("storage", showSwitch);
