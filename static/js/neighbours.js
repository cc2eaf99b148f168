// The way through the queue: this tab remembers which list was shown last, so that a ticket leads back to it and on to
// the next one. Without scripts the links lead to the plain queue.

const KEY = "pooldesk.queue:";
// What an address says beside its list: a person's name, and places in the list.
const BESIDE = ["name", "after", "place", "of", "at", "then"];

function list(search) {
  const asked = new URLSearchParams(search);
  if (!asked.has("status")) asked.set("status", "open");
  for (const name of BESIDE) asked.delete(name);
  asked.sort();
  return asked.toString();
}

const keyOf = () => {
  const scope = document.getElementById("page")?.dataset.scope;
  return scope ? KEY + scope : null;
};

function remember() {
  const key = keyOf();
  if (!key || !document.querySelector("[data-queue-page]")) return;
  const tickets = [...document.querySelectorAll("[data-row-link]")].map((link) => link.getAttribute("href"));
  try { sessionStorage.setItem(key, JSON.stringify({ url: location.pathname + location.search, tickets })); } catch { /* not kept */ }
}

function recall() {
  try { return JSON.parse(sessionStorage.getItem(keyOf())); } catch { return null; }
}

function lead(link, url) {
  if (!link) return;
  link.hidden = !url && !link.getAttribute("href");
  if (url) link.href = then(url);
}

/** Going on after an action is a choice for all tickets of the list: the address of the next one says it, too. */
function then(address) {
  const url = new URL(address, location.href);
  const chosen = new URLSearchParams(location.search).get("then");
  if (chosen) url.searchParams.set("then", chosen);
  return url.href;
}

const path = (address) => new URL(address, location.href).pathname;

/** Marks the starred view that is shown: a list that is loaded in place leaves the views beside it as they are. */
function mark() {
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.getAttribute("href") === location.pathname + location.search) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function show() {
  mark();
  remember();
  const queue = recall();
  if (!queue) return;
  // A ticket's own address may name another list than the one that this tab has shown last.
  if (new URLSearchParams(location.search).has("place") && list(location.search) !== list(new URL(queue.url, location.href).search)) return;
  for (const link of document.querySelectorAll("[data-queue-link]")) link.href = queue.url;
  const way = document.querySelector("[data-neighbours]");
  if (!way) return;
  const at = queue.tickets.findIndex((url) => path(url).endsWith(`/${document.querySelector("[data-ticket]").dataset.ticket}/`));
  if (!way.querySelector("[data-place]")) way.hidden = at < 0 || queue.tickets.length < 2;
  lead(way.querySelector("[data-previous-ticket]"), at > 0 && queue.tickets[at - 1]);
  lead(way.querySelector("[data-next-ticket]"), at >= 0 && queue.tickets[at + 1]);
}

document.addEventListener("htmx:afterSettle", show);
window.addEventListener("pageshow", show);
show();
