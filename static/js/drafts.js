// What somebody is typing survives a reload, a stray click on a link and a lost connection: it is kept in this tab's
// session storage, under the person, the desk and the page, until the server has taken it.

const PREFIX = "pooldesk.draft:";

function keyOf(form) {
  const scope = document.getElementById("page")?.dataset.scope;
  return scope ? `${PREFIX}${scope}:${location.pathname}:${form.dataset.draft}` : null;
}

function read(key) {
  try { return JSON.parse(sessionStorage.getItem(key)) || null; } catch { return null; }
}

function write(key, value) {
  try {
    if (value) sessionStorage.setItem(key, JSON.stringify(value));
    else sessionStorage.removeItem(key);
  } catch { /* no storage: nothing is kept, nothing breaks */ }
}

const fieldsOf = (form) => [...form.querySelectorAll("textarea[name], input[type=text][name], select[name]")];

/** Kept with the texts: sent again after a lost answer it is the same request, and an edit is of the same version. */
const marksOf = (form) => [...form.querySelectorAll("input[name=request_id], input[name=version]")];

/** A form that begins with stored values has a draft as soon as one of them was changed; an empty one, with any text. */
const editsOf = (form) => form.dataset.draft === "edit";
const isKept = (field, edits) => (edits ? !isAsLoaded(field) : field.matches("textarea, input") && field.value.trim());
const isAsLoaded = (field) => (field.matches("select") ? [...field.options].every((o) => o.selected === o.defaultSelected) : field.value === field.defaultValue);

function keep(form, sent = false) {
  const key = keyOf(form);
  if (!key) return;
  const values = {};
  for (const field of fieldsOf(form)) if (isKept(field, editsOf(form))) values[field.name] = field.value;
  const checked = [...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.name);
  const marks = Object.fromEntries(marksOf(form).map((field) => [field.name, field.value]));
  write(key, Object.keys(values).length ? { values, checked, marks, sent } : null);
}

/** Forgets the drafts that were sent and answered with success; any other answer leaves them as they were. */
function settle() {
  const scope = document.getElementById("page")?.dataset.scope;
  if (!scope || document.querySelector("[data-resends]")) return;
  const done = document.querySelector("#messages .notice-success") || location.hash === "#latest";
  let keys = [];
  try { keys = Object.keys(sessionStorage); } catch { return; }
  for (const key of keys) {
    if (!key.startsWith(`${PREFIX}${scope}:`)) continue;
    const draft = read(key);
    if (draft?.sent) write(key, done ? null : { ...draft, sent: false });
  }
}

/** Fills empty fields from the draft, and its check boxes with them: a note must not come back as a comment. */
function restore(form) {
  if (form.dataset.draftReady) return;
  form.dataset.draftReady = "true";
  const key = keyOf(form);
  const draft = key && read(key);
  if (!draft || form.querySelector("[data-error-summary]")) return;
  if (wasStored(draft)) {
    write(key, null);
    return;
  }
  let restored = false;
  for (const field of fieldsOf(form)) {
    const text = draft.values[field.name];
    if (text === undefined || text === field.value || (!editsOf(form) && field.value.trim() && !field.matches("select"))) continue;
    field.value = text;
    restored = true;
  }
  if (restored) for (const box of form.querySelectorAll("input[type=checkbox]")) box.checked = (draft.checked || []).includes(box.name);
  if (restored) for (const mark of marksOf(form)) mark.value = draft.marks?.[mark.name] || mark.value;
  const note = form.querySelector("[data-draft-note]");
  if (note) note.hidden = !restored;
  if (restored) document.dispatchEvent(new CustomEvent("pooldesk:restored"));
}

/** Whether the page shows the comment already: its answer was lost, not its text. The server names entries so. */
function wasStored(draft) {
  const id = draft.marks?.request_id;
  return Boolean(id && document.getElementById(`entry-${id.slice(0, 12)}`));
}

const restoreAll = () => document.querySelectorAll("form[data-draft]").forEach(restore);

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.matches("[data-draft]")) keep(form);
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-draft]")) keep(form, true);
  if (form.matches("[data-draft-sends]")) resend(form.dataset.draftSends);
  if (form.matches("[data-ends-session]")) {
    try {
      for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
    } catch { /* nothing kept */ }
  }
});

// The page of two versions sends or drops what was typed into the form before it.
const keyHere = (name) => keyOf({ dataset: { draft: name } });

function resend(name) {
  const key = keyHere(name);
  const draft = key && read(key);
  if (draft) write(key, { ...draft, sent: true });
}

document.addEventListener("click", (event) => {
  const drop = event.target.closest?.("[data-draft-drops]");
  if (drop && keyHere(drop.dataset.draftDrops)) write(keyHere(drop.dataset.draftDrops), null);
});

document.addEventListener("click", (event) => {
  const discard = event.target.closest?.("[data-draft-discard]");
  if (!discard) return;
  const form = discard.closest("form");
  if (editsOf(form)) form.reset();
  else for (const field of fieldsOf(form)) if (!field.matches("select")) field.value = "";
  for (const box of form.querySelectorAll("input[type=checkbox]")) box.checked = false;
  write(keyOf(form), null);
  form.querySelector("[data-draft-note]").hidden = true;
  form.querySelector("textarea")?.focus();
});

document.addEventListener("pooldesk:taken", (event) => {
  if (event.detail.matches("[data-draft]")) write(keyOf(event.detail), null);
});

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.elt.closest?.(".menu")) return;
  settle();
  restoreAll();
});
settle();
restoreAll();
