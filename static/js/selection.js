// Choosing rows of a list: all at once, a range with Shift, the count, and the limit of one bulk change.

let anchor = null;

const boxesOf = (form) => [...form.querySelectorAll("input[name=tickets]")];

function refresh(form) {
  const boxes = boxesOf(form);
  const chosen = boxes.filter((box) => box.checked).length;
  const limit = Number(form.dataset.limit) || Infinity;
  const all = form.querySelector("[data-select-all]");
  if (all) {
    all.checked = boxes.length > 0 && chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
  }
  const count = form.querySelector("[data-count]");
  if (count) count.textContent = chosen ? gettext("{count} selected", { count: chosen }) : count.dataset.count;
  const everything = form.querySelector("[data-all-of-list]");
  if (everything) everything.hidden = !(boxes.length && chosen === boxes.length);
  const over = chosen > limit;
  const warning = form.querySelector("[data-over-limit]");
  if (warning) warning.hidden = !over;
  for (const button of form.querySelectorAll("button[name=to]")) button.disabled = over;
}

document.addEventListener("click", (event) => {
  const box = event.target;
  if (!box.matches?.("[data-selection] input[name=tickets]")) return;
  const boxes = boxesOf(box.form);
  if (event.shiftKey && anchor?.isConnected && anchor.form === box.form) {
    const [from, to] = [boxes.indexOf(anchor), boxes.indexOf(box)].sort((a, b) => a - b);
    for (const each of boxes.slice(from, to + 1)) each.checked = box.checked;
  }
  anchor = box;
  refresh(box.form);
});

// Shift and a click on a label would select the text between the two rows.
document.addEventListener("mousedown", (event) => {
  if (event.shiftKey && event.target.closest?.("[data-selection] .check")) event.preventDefault();
});

document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (!form?.matches("[data-selection]")) return;
  if (event.target.matches("[data-select-all]")) {
    for (const box of boxesOf(form)) box.checked = event.target.checked;
  }
  refresh(form);
});

document.addEventListener("click", (event) => {
  const clear = event.target.closest?.("[data-clear-selection]");
  if (!clear) return;
  const form = clear.closest("form");
  for (const box of boxesOf(form)) box.checked = false;
  refresh(form);
  form.querySelector("[data-select-all]")?.focus();
});

function refreshAll() {
  for (const form of document.querySelectorAll("[data-selection]")) refresh(form);
}

window.addEventListener("pageshow", refreshAll);
document.addEventListener("htmx:afterSettle", refreshAll);
refreshAll();
