// A list or a ticket that stays open asks now and then whether it is out of date, while its tab is seen. The server
// answers with nothing or with a notice; what somebody is reading is never replaced under their eyes.

const SECOND = 1000;
let last = Date.now();

setInterval(() => {
  const places = [...document.querySelectorAll("[data-updates]")];
  if (!places.length || document.hidden || Date.now() - last < SECOND * Number(places[0].dataset.updates)) return;
  last = Date.now();
  for (const place of places) place.dispatchEvent(new CustomEvent("pooldesk:updates"));
}, SECOND);

document.addEventListener("htmx:afterSettle", () => { last = Date.now(); });
