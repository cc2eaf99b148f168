// A list or a ticket that stays open asks now and then whether it is out of date, while its tab is seen. The server
// answers with nothing or with a notice; what somebody is reading is never replaced under their eyes.

// Where live.js asks for the whole page, these parts ask when it says that something has changed.

const SECOND = 1000;
const jitter = () => 0.9 + Math.random() * 0.3;
let wait = jitter();
let last = Date.now();

setInterval(() => {
  const places = [...document.querySelectorAll("[data-updates]")];
  if (!places.length || document.hidden || document.querySelector("[data-live]")) return;
  if (Date.now() - last < SECOND * wait * Number(places[0].dataset.updates)) return;
  [last, wait] = [Date.now(), jitter()];
  for (const place of places) place.dispatchEvent(new CustomEvent("pooldesk:updates"));
}, SECOND);

document.addEventListener("htmx:afterSettle", () => { last = Date.now(); });
