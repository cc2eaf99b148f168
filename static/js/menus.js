// Menus (details elements) and dialogs: Esc and a click outside close them, arrow keys walk their options,
// a filter box narrows a list that is already in the page.

const openMenus = () => document.querySelectorAll("details.menu[open]");

function closeMenu(menu, { refocus = false } = {}) {
  const inside = menu.contains(document.activeElement);
  menu.open = false;
  if (refocus && inside) menu.querySelector("summary").focus();
}

document.addEventListener("click", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target)) closeMenu(menu);
});

// A link of a row that is shown as a panel has been chosen: what it loads into the page comes behind the panel. Browsers
// without panels show the row.
document.addEventListener("click", (event) => {
  const row = event.target.closest("[popover] > a")?.parentElement;
  if (row?.hidePopover && row.matches(":popover-open")) row.hidePopover();
});

document.addEventListener("focusout", (event) => {
  const menu = event.target.closest?.("details.menu[open]");
  if (menu && event.relatedTarget && !menu.contains(event.relatedTarget)) closeMenu(menu);
});

document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.menu[open]");
  if (event.key === "Escape") {
    for (const open of openMenus()) closeMenu(open, { refocus: true });
    return;
  }
  if (!menu || !["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) return;
  const typing = event.target.matches("input");
  if (typing && (event.key === "Home" || event.key === "End")) return;
  const stops = [...menu.querySelectorAll("[data-filter], [data-option]")].filter((el) => el.offsetParent && !el.disabled);
  if (!stops.length) return;
  event.preventDefault();
  const at = stops.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at < 0 ? stops.length - 1 : at - 1, Home: 0, End: stops.length - 1 }[event.key];
  stops[(next + stops.length) % stops.length].focus();
});

// The search box of an open menu is what the person wants next, unless focus would raise a keyboard over the list.
const typesByHand = matchMedia("(hover: hover)");
let replaced = null;  // what had the focus in a menu and makes room for what is loaded
document.addEventListener("htmx:beforeSwap", (event) => {
  const had = document.activeElement;
  replaced = event.detail.target?.contains(had) && had.closest("details.menu[open]") ? had : null;
});
document.addEventListener("htmx:afterSettle", (event) => {
  const menu = event.detail.elt.closest?.("details.menu[open]");
  if (!menu) return;
  const isLost = replaced && !replaced.isConnected;
  replaced = null;
  const box = typesByHand.matches && menu.querySelector("[data-filter]");
  if (isLost) (box || menu.querySelector("[data-option]"))?.focus();
  else if (box && document.activeElement === menu.querySelector("summary")) box.focus();
});

// A panel must fit into the window: it opens upwards when there is more room above, and scrolls inside what is there.
function fit(menu) {
  const panel = menu.querySelector(".menu-panel");
  const { top, bottom } = menu.querySelector("summary").getBoundingClientRect();
  const below = window.innerHeight - bottom - 16;
  const upwards = below < 220 && top > below;
  menu.classList.toggle("menu-up", upwards);
  panel.style.setProperty("--room", `${Math.round(Math.max(upwards ? top - 16 : below, 160))}px`);
}

document.addEventListener("toggle", (event) => {
  if (!event.target.matches?.("details.menu[open]")) return;
  fit(event.target);
  if (typesByHand.matches) event.target.querySelector("[data-filter]")?.focus();
}, true);

document.addEventListener("input", (event) => {
  const box = event.target.closest("[data-filter]");
  if (!box || !box.dataset.filter) return;
  const list = document.getElementById(box.dataset.filter);
  if (!list) return;
  const wanted = box.value.trim().toLowerCase();
  let shown = 0;
  for (const item of list.querySelectorAll("li")) {
    item.hidden = !item.textContent.toLowerCase().includes(wanted);
    if (!item.hidden) shown += 1;
  }
  const none = (list.closest("form") || list).parentElement.querySelector("[data-none]");
  if (none) none.hidden = shown > 0;
});

// Enter in a filter box takes the first option left.
document.addEventListener("keydown", (event) => {
  const box = event.target.closest?.("[data-filter]");
  if (event.key !== "Enter" || !box || !box.dataset.filter) return;
  const list = document.getElementById(box.dataset.filter);
  const first = list && [...list.querySelectorAll("[data-option]")].find((el) => el.offsetParent);
  if (!first) return;
  event.preventDefault();
  first.click();
});

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens)?.showModal();
  const closer = event.target.closest("[data-closes]");
  if (closer) closer.closest("dialog")?.close();
  if (event.target.matches("dialog")) event.target.close();
});
