// The way through the queue: this tab remembers which list was shown last, so that a ticket leads back to it and on to
// the next one. Without scripts the links lead to the plain queue.

const KEY = "pooldesk.queue:";

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
  link.hidden = !url;
  if (url) link.href = url;
}

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
  for (const link of document.querySelectorAll("[data-queue-link]")) link.href = queue.url;
  const way = document.querySelector("[data-neighbours]");
  if (!way) return;
  const at = queue.tickets.findIndex((url) => url.endsWith(`/${document.querySelector("[data-ticket]").dataset.ticket}/`));
  way.hidden = at < 0 || queue.tickets.length < 2;
  lead(way.querySelector("[data-previous-ticket]"), at > 0 && queue.tickets[at - 1]);
  lead(way.querySelector("[data-next-ticket]"), at >= 0 && queue.tickets[at + 1]);
}

document.addEventListener("htmx:afterSettle", show);
window.addEventListener("pageshow", show);
show();
