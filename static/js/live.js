// Open pages of tickets and lists ask what is new, by an address that costs little: who else is on a ticket, when
// something was changed last, and how many tickets have news for the notification of the browser. Only a change makes
// other parts of the page ask. A page that somebody uses asks every few seconds, one that nobody has touched for some
// minutes once a minute, and a hidden tab asks nothing but for notifications, where somebody chose them.

const SECOND = 1000;
const STAYS = 30; // seconds between writes that say who is on the ticket
const NEAR = 6; // seconds between reads, at least, while somebody uses the page
const READ = 55; // the same while nobody does: with new addresses they cost one unit of capacity a minute
const USED = 120; // seconds after a key, a move of the pointer or a scroll in which the page is used
const BUSY = 60; // seconds between requests for the news of a list in a desk where something always changes, at most
const RENEWS = 30; // seconds between requests for a new address, at least
const TYPES = 15; // seconds after a key in which somebody writes
const CHOICE = "pooldesk.notify";
const LAST = "pooldesk.notified";

const place = () => document.querySelector("[data-live]");
const isTicket = (node) => "shown" in node.dataset;
const isUsed = () => !document.hidden && Date.now() - used < USED * SECOND;
const writes = () => Date.now() - typed < TYPES * SECOND;
const jitter = () => 0.9 + Math.random() * 0.2;

let others = [];
let beaten = 0;
let read = 0;
let counted = 0; // when it asked for notifications last
let used = Date.now();
let offered = 0; // when a list asked for its news last
let gap = 0; // until it may ask again
let renewed = 0;
let typed = 0;
let wrote = false; // what others were told last
let known = null; // what a list was told last
let told = ""; // the change that the page was told of last
let page = null; // the address that all this is about, without its token

function stored(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch { /* no storage: nobody chose anything */ }
  return null;
}

const notifies = () => "Notification" in window && Notification.permission === "granted" && stored(CHOICE) === "1";

async function ask(node, what) {
  try {
    const answer = await fetch(node.dataset.live, { method: "POST", body: new URLSearchParams(what) });
    if ([403, 404, 503].includes(answer.status)) {
      await renew(node);
      return null;
    }
    return answer.ok ? await answer.json() : null;
  } catch {
    return null; // out of reach: the next look tries again
  }
}

/** Asks for a new address: after some minutes, and where the desk has moved. Who may not get one, or signed out, has a
 * page that asks as it would without this. */
async function renew(node) {
  if (Date.now() - renewed < RENEWS * SECOND) return;
  renewed = Date.now();
  const page = node.dataset.live.split("/").at(-2);
  const answer = await fetch(`${node.dataset.renew}?page=${page}`, { headers: { Accept: "application/json" } });
  if (answer.status === 429 || answer.status >= 500) return;
  if (answer.ok && !answer.redirected) node.dataset.live = (await answer.json()).live;
  else for (const one of document.querySelectorAll("[data-live]")) one.removeAttribute("data-live");
}

function changed() {
  for (const part of document.querySelectorAll("[data-updates]")) part.dispatchEvent(new CustomEvent("pooldesk:updates"));
}

async function beat(node) {
  beaten = Date.now();
  wrote = writes();
  meet(await ask(node, { for: "people", ...(wrote ? { writes: "1" } : {}) }));
}

/** Shows who is there, and hears from their pages of changes. */
function meet(answer) {
  if (!answer?.others) return;
  others = answer.others;
  show();
  news(answer.at);
}

/** A page that shows less than there is asks for it, once for each change. */
function news(at) {
  const node = place();
  if (!at || !node || at <= node.dataset.shown || at <= told) return;
  told = at;
  changed();
}

async function look(node) {
  read = Date.now();
  if (notifies() && (document.hidden || Date.now() - counted >= 2 * READ * SECOND)) {
    counted = Date.now();
    notify(await ask(node, { for: "news" }));
    return;
  }
  const answer = await ask(node, { for: "change", ...(isUsed() && isTicket(node) ? { people: "1" } : {}) });
  if (!answer) return;
  meet(answer);
  if (isTicket(node)) news(answer.at);
  else list(answer.at);
}

/** A list asks for its news at the first change. Where something changes all the time, which may be in other lists, it
 * asks more and more seldom. */
function list(at) {
  const passed = Date.now() - offered;
  if (known === null) known = at;
  else if (at === known) gap = passed < 2 * gap ? gap : 0;
  else if (passed >= gap) {
    [known, offered, gap] = [at, Date.now(), Math.min(BUSY * SECOND, 2 * gap || 2 * NEAR * SECOND)];
    changed();
  }
}

function notify(answer) {
  if (!answer || !("unread" in answer)) return;
  const count = document.querySelector("#bell .topnav-count");
  if (count) {
    count.hidden = !answer.unread;
    count.querySelector("[data-number]").textContent = answer.unread > 99 ? "99+" : answer.unread;
  }
  const before = Number(stored(LAST) || 0);
  stored(LAST, String(answer.unread));
  if (answer.unread <= before) return;
  const text = ngettext("{num} ticket has news for you.", "{num} tickets have news for you.", answer.unread);
  const made = new Notification("Pooldesk", { body: text, tag: "pooldesk" });
  made.onclick = () => { window.focus(); document.getElementById("bell")?.click(); };
}

/** Says who is there, above what one writes. Nothing is blocked. */
function show() {
  const line = document.getElementById("presence");
  if (!line) return;
  const named = (people) => (people.length > 3 ? ngettext("{num} person", "{num} people", people.length) : people.map((one) => one.name).join(", "));
  const writers = others.filter((one) => one.writes);
  const readers = others.filter((one) => !one.writes);
  const parts = [];
  if (writers.length) parts.push(ngettext("{people} is writing an answer.", "{people} are writing an answer.", writers.length, { people: named(writers) }));
  if (readers.length) parts.push(ngettext("{people} is looking at this ticket.", "{people} are looking at this ticket.", readers.length, { people: named(readers) }));
  const text = parts.join(" ");
  line.hidden = !text;
  line.classList.toggle("is-writing", writers.length > 0);
  if (line.textContent !== text) line.textContent = text;
}

let beatIn = STAYS * SECOND;
let more = 1.1; // the part of a time that reads wait longer, drawn anew for each

function tick() {
  const node = place();
  if (!node) return;
  const here = location.pathname;
  if (page !== here) {
    [page, others, beaten, told, known, gap, used] = [here, [], 0, "", null, 0, Date.now()];
    read = isTicket(node) ? Date.now() : 0; // a ticket is as it was loaded, a list has to learn from where it goes on
  }
  if (document.hidden && !notifies()) return;
  if (!document.hidden && isTicket(node) && (wrote !== writes() || Date.now() - beaten >= beatIn)) {
    beatIn = STAYS * SECOND * jitter();
    beat(node);
  }
  if (Date.now() - read >= (isUsed() ? NEAR : READ) * SECOND * more) {
    more = 1 + Math.random() * 0.2;
    look(node);
  }
}

setInterval(tick, SECOND);
tick();

for (const type of ["keydown", "pointermove", "pointerdown", "scroll", "focusin"]) {
  addEventListener(type, () => { used = Date.now(); }, { capture: true, passive: true });
}

// Whoever begins to write is told at once who else does, and the others are told soon.
document.addEventListener("input", (event) => {
  const node = place();
  if (!node || !isTicket(node) || !event.target.closest?.("[data-reply]") || !event.target.matches("textarea")) return;
  const begins = !writes();
  typed = Date.now();
  if (begins && Date.now() - beaten >= SECOND) beat(node);
});
document.addEventListener("pooldesk:taken", () => { typed = 0; });
document.addEventListener("htmx:afterSettle", show);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  used = Date.now();
  beaten = Math.min(beaten, Date.now() - beatIn);
  tick();
});
addEventListener("pagehide", () => {
  const node = place();
  if (node && isTicket(node)) navigator.sendBeacon(node.dataset.live, new URLSearchParams({ for: "people", leaves: "1" }));
});

// --- the choice, on the page of all choices ---

function offer() {
  const part = document.querySelector("[data-notify]");
  if (!part || !part.hidden || !("Notification" in window)) return;
  part.hidden = false;
  const box = part.querySelector("[data-notify-choice]");
  const refused = () => { part.querySelector("[data-notify-refused]").hidden = Notification.permission !== "denied"; };
  box.checked = notifies();
  refused();
  box.addEventListener("change", async () => {
    if (box.checked && Notification.permission === "default") await Notification.requestPermission();
    box.checked = box.checked && Notification.permission === "granted";
    stored(CHOICE, box.checked ? "1" : "0");
    refused();
  });
}

offer();
document.addEventListener("htmx:afterSettle", offer);
