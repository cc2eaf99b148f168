// Names behind an "@" in a comment: a list under the text, which keys or a pointer choose from. Without a script the
// name is typed in full. The members are fetched once, when the first "@" is typed.

const MOST = 6; // names that are shown
const TYPED = /(^|[^\p{L}\p{N}_@.+/-])@([\p{L}\p{N}_][\p{L}\p{N}_'’. -]{0,40})?$/u;

let people = null; // names and roles, when they have come
let asked = "";

const panelOf = (field) => document.getElementById(field.getAttribute("aria-controls"));
const optionsOf = (panel) => [...panel.querySelectorAll("[role=option]")];
const chosenIn = (panel) => panel.querySelector("[aria-selected=true]");
const isOpen = (field) => Boolean(panelOf(field) && !panelOf(field).hidden);
const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** What is typed behind the "@" before the cursor; null where there is none. */
function typedIn(field) {
  if (field.selectionStart !== field.selectionEnd) return null;
  const found = TYPED.exec(field.value.slice(0, field.selectionStart));
  return found && (found[2] || "");
}

async function members(address) {
  if (asked === address) return;
  asked = address;
  try {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (answer.ok) people = (await answer.json()).people;
    else asked = "";
  } catch {
    asked = ""; // out of reach: the next key asks again
  }
}

function matching(typed) {
  const wanted = folded(typed);
  const starts = (person) => folded(person.name).startsWith(wanted);
  const found = (people || []).filter((person) => starts(person) || (wanted && folded(person.name).includes(` ${wanted}`)));
  return found.sort((one, other) => starts(other) - starts(one)).slice(0, MOST);
}

function close(field) {
  const panel = panelOf(field);
  if (panel) panel.hidden = true;
  field.removeAttribute("aria-activedescendant");
}

function choose(field, option) {
  chosenIn(panelOf(field))?.setAttribute("aria-selected", "false");
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function show(field, found) {
  const panel = panelOf(field);
  panel.replaceChildren(...found.map((person, number) => {
    const option = document.createElement("div");
    option.className = "option";
    option.id = `${panel.id}-${number}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.dataset.name = person.name;
    const text = document.createElement("span");
    text.className = "option-text";
    const name = document.createElement("bdi");
    name.textContent = person.name;
    const role = document.createElement("span");
    role.className = "option-note";
    role.textContent = person.role;
    text.append(name, role);
    option.append(text);
    return option;
  }));
  const opens = panel.hidden;
  panel.hidden = false;
  choose(field, optionsOf(panel)[0]);
  const region = document.getElementById("announce");
  if (region && opens) region.textContent = `${found.length === 1 ? "1 name" : `${found.length} names`}. Enter inserts, Escape closes.`;
}

async function update(field) {
  if (typedIn(field) === null) return close(field);
  await members(field.dataset.mentions);
  const typed = document.activeElement === field ? typedIn(field) : null;
  const found = typed === null ? [] : matching(typed);
  // The whole name stands there: nothing is left to choose.
  if (!found.length || (found.length === 1 && folded(found[0].name) === folded(typed))) return close(field);
  show(field, found);
}

function insert(field, name) {
  const end = field.selectionStart;
  const begin = end - typedIn(field).length;
  field.setRangeText(`${name} `, begin, end, "end");
  close(field);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function move(field, step) {
  const all = optionsOf(panelOf(field));
  choose(field, all[(all.indexOf(chosenIn(panelOf(field))) + step + all.length) % all.length]);
}

document.addEventListener("input", (event) => {
  if (event.target.matches?.("[data-mentions]") && !event.isComposing) update(event.target);
});

document.addEventListener("compositionend", (event) => {
  if (event.target.matches?.("[data-mentions]")) update(event.target);
});

// Before the keys of forms and pages: Enter inserts a name, and Escape closes the list without leaving the text.
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (!field.matches?.("[data-mentions]") || event.isComposing || !isOpen(field)) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return close(field);
  const chosen = chosenIn(panelOf(field));
  if (event.key === "ArrowDown" || event.key === "ArrowUp") move(field, event.key === "ArrowDown" ? 1 : -1);
  else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen && typedIn(field) !== null) insert(field, chosen.dataset.name);
  else if (event.key === "Escape") close(field);
  else {
    if (["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown", "Tab"].includes(event.key)) close(field);
    return;
  }
  event.preventDefault();
  event.stopPropagation();
}, true);

// Focus stays in the text, whatever of the list is pressed.
document.addEventListener("mousedown", (event) => {
  const option = event.target.closest?.(".mentions [role=option]");
  if (!event.target.closest?.(".mentions")) return;
  event.preventDefault();
  const field = document.querySelector(`[data-mentions][aria-controls="${event.target.closest(".mentions").id}"]`);
  if (option && field && typedIn(field) !== null) insert(field, option.dataset.name);
});

document.addEventListener("focusout", (event) => {
  if (event.target.matches?.("[data-mentions]")) close(event.target);
});
