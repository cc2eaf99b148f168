// Texts with a limit: nothing is cut. What is too long is counted, said, and not sent before it is shorter.

const NEAR = 0.9;  // of the limit, from which on the count is shown

// As the server counts: characters rather than UTF-16 units, and one for the end of a line.
const lengthOf = (text) => (text.length ? [...text.trim()].length : 0);

function check(field) {
  const limit = Number(field.dataset.characters);
  const length = field.value.length > limit * NEAR ? lengthOf(field.value) : 0;
  const over = length > limit;
  let counter = document.getElementById(`${field.id}-counter`);
  if (!counter && length > limit * NEAR) {
    counter = document.createElement("p");
    counter.id = `${field.id}-counter`;
    counter.className = "counter";
    counter.setAttribute("role", "status");
    field.after(counter);
    const described = [field.getAttribute("aria-describedby"), counter.id].filter(Boolean).join(" ");
    field.setAttribute("aria-describedby", described);
  }
  if (counter) {
    const written = (number) => number.toLocaleString(document.documentElement.lang);
    const count = gettext("{count} of {limit} characters", { count: written(length), limit: written(limit) });
    counter.hidden = length <= limit * NEAR;
    counter.textContent = over ? gettext("{count}. Shorten this text by {over} to send it.", { count, over: written(length - limit) }) : count;
    counter.classList.toggle("counter-over", over);
  }
  if (over) field.setAttribute("aria-invalid", "true");
  else if (field.dataset.over) field.removeAttribute("aria-invalid");
  if (over) field.dataset.over = "true";
  else delete field.dataset.over;
  return over;
}

const checkAll = () => document.querySelectorAll("[data-characters]").forEach(check);

document.addEventListener("input", (event) => {
  if (event.target.matches("[data-characters]")) check(event.target);
});

// On the window, and so before forms.js: what is not sent must not make its button busy.
window.addEventListener("submit", (event) => {
  const over = [...event.target.querySelectorAll("[data-characters]")].filter(check);
  if (!over.length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  over[0].focus();
  document.getElementById(`${over[0].id}-counter`)?.scrollIntoView({ block: "nearest" });
}, true);

document.addEventListener("htmx:afterSettle", checkAll);
document.addEventListener("pooldesk:restored", checkAll);
checkAll();
