// Counts down to the targets of tickets while the page is seen, in the words in which the server wrote them.

const MINUTE = 60;
const HOUR = 60; // minutes
const DAY = 1440;
const SECOND = 1000;

const first = document.querySelector("[data-due]");
const ahead = first ? Date.now() / SECOND - first.dataset.now : 0; // seconds of the clock of this machine

function about(minutes) {
  if (minutes >= 10 * HOUR) return `${Math.floor(minutes / HOUR)} h`;
  const [hours, rest] = [Math.floor(minutes / HOUR), minutes % HOUR];
  return [hours ? `${hours} h` : "", rest ? `${rest} min` : ""].filter(Boolean).join(" ");
}

function count() {
  if (document.hidden) return;
  for (const one of document.querySelectorAll("[data-due]")) {
    const left = one.dataset.due - (Date.now() / SECOND - ahead);
    const minutes = Math.max(1, Math.floor(Math.abs(left) / MINUTE));
    if (minutes >= 2 * DAY) continue;
    const text = (left > 0 ? one.dataset.in : one.dataset.late).replace("%", about(minutes));
    if (one.textContent !== text) one.textContent = text;
    if (left <= 0) one.parentElement.classList.replace("due-due_soon", "due-overdue") || one.parentElement.classList.add("due-overdue");
  }
}

setInterval(count, 20 * SECOND);
document.addEventListener("visibilitychange", count);
