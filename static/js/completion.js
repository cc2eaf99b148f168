// Completion in a comment: names behind an "@" and ready answers behind a ";", in a list under the text which keys or a
// pointer choose from. Without a script names are typed in full, and answers are chosen below the text.

const MOST = 6; // names that are shown
const RESTS = 120; // milliseconds without a key
const TYPED_NAME = /(^|[^\p{L}\p{N}_@.+/-])@([\p{L}\p{N}_][\p{L}\p{N}_'’. -]{0,40})?$/u;
const TYPED_ANSWER = /(^|\s);([\p{L}\p{N}][\p{L}\p{N}_ -]{0,40})?$/u;

const panelOf = (field) => document.getElementById(field.getAttribute("aria-controls"));
const optionsOf = (panel) => [...panel.querySelectorAll("[role=option]")];
const chosenIn = (panel) => panel.querySelector("[aria-selected=true]");
const isOpen = (field) => Boolean(panelOf(field) && !panelOf(field).hidden);
const folded = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const formOf = (field) => field.closest("form");

function say(text) {
  const region = document.getElementById("announce");
  if (region) region.textContent = text;
}

const answers = new Map(); // answers of the server by address, of this page

/** Asks the server once for each address; out of reach, the next key asks again. */
function asked(address) {
  if (!answers.has(address)) {
    answers.set(address, fetch(address, { headers: { Accept: "application/json" } })
      .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
      .catch(() => { answers.delete(address); return null; }));
  }
  return answers.get(address);
}

async function names(field, typed) {
  let told = await asked(field.dataset.mentions);
  if (told?.more && typed.trim()) { // a large desk: the server looks for those who are called so
    await new Promise((rested) => { setTimeout(rested, RESTS); });
    if (at(field)?.typed !== typed) return null;
    told = await asked(`${field.dataset.mentions}?${new URLSearchParams({ q: typed.trim() })}`);
  }
  const people = told?.people || [];
  const wanted = folded(typed);
  const starts = (person) => folded(person.name).startsWith(wanted);
  const found = people.filter((person) => starts(person) || (wanted && folded(person.name).includes(` ${wanted}`)));
  // The whole name stands there: nothing is left to choose.
  if (found.length === 1 && folded(found[0].name) === wanted) return [];
  return found.sort((one, other) => starts(other) - starts(one)).slice(0, MOST).map((one) => ({ label: one.name, note: one.role, value: one.name }));
}

/** Asks once the keys rest, so that a word typed at once is one request. Null where more was typed meanwhile. */
async function offered(field, typed) {
  await new Promise((rested) => { setTimeout(rested, RESTS); });
  if (at(field)?.typed !== typed) return null;
  const told = await asked(`${field.dataset.answers}?${new URLSearchParams({ q: typed.trim() })}`);
  return (told?.answers || []).map((one) => ({ label: one.title, note: `;${one.shortcut}`, value: one.id }));
}

const insert = (field, begin, end, text) => field.dispatchEvent(new CustomEvent("pooldesk:insert", { bubbles: true, detail: { begin, end, text } }));

function insertName(field, name) {
  const end = field.selectionStart;
  insert(field, end - at(field).typed.length, end, `${name} `);
}

/** Puts the answer in place of what was typed, and what it changes below the text, where it can be taken out. */
async function insertAnswer(field, id) {
  const told = await asked(field.dataset.answer.replace("/-/", `/${encodeURIComponent(id)}/`));
  if (!told) return say(gettext("The answer could not be loaded. Try again."));
  const now = at(field);
  const end = field.selectionStart;
  insert(field, now ? end - now.typed.length - 1 : end, field.selectionEnd, told.text);
  const parts = told.actions.map((one) => ({ ...one, checked: true }));
  addParts(formOf(field), [{ name: "answers", value: told.id }, ...parts]);
  field.dispatchEvent(new Event("input", { bubbles: true })); // the draft keeps these, too
  say([gettext("Answer inserted."), parts.length ? gettext("With this comment:") : "", ...parts.map((one) => `${one.label}.`)].join(" "));
}

const SOURCES = [
  { kind: "mentions", pattern: TYPED_NAME, find: names, take: insertName, count: (many) => ngettext("{num} name", "{num} names", many) },
  { kind: "answers", pattern: TYPED_ANSWER, find: offered, take: insertAnswer, count: (many) => ngettext("{num} answer", "{num} answers", many) },
];

/** What is being completed before the cursor, and what of it is typed; null for nothing. */
function at(field) {
  if (field.selectionStart !== field.selectionEnd) return null;
  for (const source of SOURCES) {
    const found = source.kind in field.dataset && source.pattern.exec(field.value.slice(0, field.selectionStart));
    if (found) return { source, typed: found[2] || "" };
  }
  return null;
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

function span(className, text, tag = "span") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

function show(field, found, count) {
  const panel = panelOf(field);
  panel.replaceChildren(...found.map(({ label, note, value }, number) => {
    const option = span("option", "", "div");
    option.id = `${panel.id}-${number}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.dataset.value = value;
    const text = span("option-text", "");
    text.append(span("", label, "bdi"), span("option-note", note));
    option.append(text);
    return option;
  }));
  const opens = panel.hidden;
  panel.hidden = false;
  choose(field, optionsOf(panel)[0]);
  if (opens) say(gettext("{found}. Enter inserts, Escape closes.", { found: count(found.length) }));
}

async function update(field) {
  const now = at(field);
  if (!now) return close(field);
  const found = await now.source.find(field, now.typed);
  const later = document.activeElement === field ? at(field) : null;
  if (later?.source === now.source && (!found || later.typed !== now.typed)) return; // the key that changed it asks itself
  if (!later || !found?.length) return close(field);
  show(field, found, now.source.count);
}

function take(field, option) {
  const now = at(field);
  close(field);
  if (option && now) now.source.take(field, option.dataset.value);
}

function move(field, step) {
  const all = optionsOf(panelOf(field));
  choose(field, all[(all.indexOf(chosenIn(panelOf(field))) + step + all.length) % all.length]);
}

// --- what a comment changes ---

/** Adds the answers and changes to what goes with the comment. Of two statuses or assignees the later one holds. */
function addParts(form, parts) {
  const place = form?.querySelector("[data-answer-actions]");
  if (!place) return;
  for (const { name, value, label, checked } of parts) {
    for (const other of place.querySelectorAll(`input[name="${CSS.escape(name)}"]`)) {
      if (other.value === value || ["set_status", "set_resolver"].includes(name)) (other.closest("label") || other).remove();
    }
    const input = document.createElement("input");
    Object.assign(input, { type: label ? "checkbox" : "hidden", name, value });
    if (!label) {
      place.append(input);
      continue;
    }
    input.checked = checked;
    input.defaultChecked = checked;
    const line = span("answer-action", "", "label");
    const text = span("", label);
    text.dir = "auto";
    line.append(input, " ", text);
    place.append(line);
  }
  place.hidden = !place.querySelector("input");
}

/** Takes what drafts.js has restored; on a new page it has done so already. */
function adopt() {
  for (const form of document.querySelectorAll("form[data-parts]")) {
    addParts(form, JSON.parse(form.dataset.parts));
    delete form.dataset.parts;
  }
}

document.addEventListener("pooldesk:restored", adopt);
adopt();

document.addEventListener("pooldesk:emptied", (event) => {
  const place = event.detail.form.querySelector("[data-answer-actions]");
  for (const one of place?.querySelectorAll("input") || []) (one.closest("label") || one).remove();
  if (place) place.hidden = true;
});

// --- keys and pointers ---

const completes = (field) => field.matches?.("[data-mentions], [data-answers]");

document.addEventListener("input", (event) => {
  if (completes(event.target) && !event.isComposing) update(event.target);
});

document.addEventListener("compositionend", (event) => {
  if (completes(event.target)) update(event.target);
});

// Before the keys of forms and pages: Enter inserts, and Escape closes the list without leaving the text.
document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (!completes(field) || event.isComposing || !isOpen(field)) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return close(field);
  const chosen = chosenIn(panelOf(field));
  if (event.key === "ArrowDown" || event.key === "ArrowUp") move(field, event.key === "ArrowDown" ? 1 : -1);
  else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen && at(field)) take(field, chosen);
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
  const list = event.target.closest?.(".mentions");
  if (!list) return;
  event.preventDefault();
  const field = document.querySelector(`[aria-controls="${list.id}"]`);
  const option = event.target.closest("[role=option]");
  if (option && field) take(field, option);
});

document.addEventListener("focusout", (event) => {
  if (completes(event.target)) close(event.target);
});
