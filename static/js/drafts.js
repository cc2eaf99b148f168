// What somebody is typing survives a reload, a stray click on a link and a lost connection: it is kept under the person,
// the desk and the page, until the server has taken it. Comments are kept on the device, for a month: whoever closes the
// browser goes on later, and nobody who signs in with another account is shown them. All else is kept by its tab.

const PREFIX = "pooldesk.draft:";
const KEPT = 30 * 24 * 3600 * 1000; // milliseconds
const STORES = ["sessionStorage", "localStorage"];

function storage(name) {
  try { return window[name]; } catch { return null; }
}

/** Every draft of a storage by its key. */
function* drafts(store) {
  for (const key of Object.keys(store || {})) if (key.startsWith(PREFIX)) yield [key, read(key, store)];
}

const storeOf = (form) => storage(form.dataset.draft === "comment" ? "localStorage" : "sessionStorage");

/** Names this tab: a draft that one tab has sent is not settled by the answers to another. */
function tab() {
  const store = storage("sessionStorage");
  if (store && !store.getItem("pooldesk.tab")) store.setItem("pooldesk.tab", Math.random().toString(36).slice(2));
  return store?.getItem("pooldesk.tab") || "";
}

function keyOf(form) {
  const scope = document.getElementById("page")?.dataset.scope;
  return scope ? `${PREFIX}${scope}:${location.pathname}:${form.dataset.draft}` : null;
}

function read(key, store) {
  try { return JSON.parse(store.getItem(key)) || null; } catch { return null; }
}

function write(key, value, store) {
  try {
    if (value) store.setItem(key, JSON.stringify({ ...value, at: Date.now() }));
    else store.removeItem(key);
  } catch { /* no storage: nothing is kept, nothing breaks */ }
}

const BOXES = "input[type=checkbox]:not([data-answer-actions] *)";
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
  const checked = [...form.querySelectorAll(BOXES)].filter((box) => box.checked).map((box) => box.name);
  const marks = Object.fromEntries(marksOf(form).map((field) => [field.name, field.value]));
  write(key, Object.keys(values).length ? { values, checked, marks, parts: partsOf(form), sent: sent && tab() } : null, storeOf(form));
}

/** What goes with a comment beside its fields: ready answers, and what they change. */
const partsOf = (form) => [...form.querySelectorAll("[data-answer-actions] input")].map((one) => ({ name: one.name, value: one.value, label: one.closest("label")?.textContent.trim(), checked: one.checked }));

/** Forgets the drafts that were sent and answered with success; any other answer leaves them as they were. */
function settle() {
  const scope = document.getElementById("page")?.dataset.scope;
  if (!scope || document.querySelector("[data-resends]")) return;
  const done = document.querySelector("#messages .notice-success") || location.hash === "#latest";
  for (const store of STORES.map(storage)) {
    for (const [key, draft] of drafts(store)) {
      if (draft?.at && Date.now() - draft.at > KEPT) write(key, null, store);
      else if (key.startsWith(`${PREFIX}${scope}:`) && draft?.sent && draft.sent === tab()) write(key, done ? null : { ...draft, sent: false }, store);
    }
  }
}

/** Fills empty fields from the draft, and its check boxes with them: a note must not come back as a comment. */
function restore(form) {
  if (form.dataset.draftReady) return;
  form.dataset.draftReady = "true";
  const key = keyOf(form);
  const store = storeOf(form);
  const draft = key && read(key, store);
  if (!draft || form.querySelector("[data-error-summary]")) return;
  if (wasStored(draft)) {
    write(key, null, store);
    return;
  }
  let restored = false;
  for (const field of fieldsOf(form)) {
    const text = draft.values[field.name];
    if (text === undefined || text === field.value || (!editsOf(form) && field.value.trim() && !field.matches("select"))) continue;
    field.value = text;
    restored = true;
  }
  if (restored) for (const box of form.querySelectorAll(BOXES)) box.checked = (draft.checked || []).includes(box.name);
  if (restored && draft.parts?.length) form.dataset.parts = JSON.stringify(draft.parts); // completion.js shows them
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
    const scope = document.getElementById("page")?.dataset.scope || "";
    const person = scope.slice(0, scope.lastIndexOf(":") + 1);
    for (const store of STORES.map(storage)) for (const [key] of drafts(store)) if (key.startsWith(PREFIX + person)) write(key, null, store);
  }
});

// The page of two versions sends or drops what was typed into the form before it.
const named = (name) => ({ dataset: { draft: name } });

function resend(name) {
  const [key, store] = [keyOf(named(name)), storeOf(named(name))];
  const draft = key && read(key, store);
  if (draft) write(key, { ...draft, sent: tab() }, store);
}

document.addEventListener("click", (event) => {
  const drop = event.target.closest?.("[data-draft-drops]");
  const form = drop && named(drop.dataset.draftDrops);
  if (form && keyOf(form)) write(keyOf(form), null, storeOf(form));
});

document.addEventListener("click", (event) => {
  const discard = event.target.closest?.("[data-draft-discard]");
  if (!discard) return;
  const form = discard.closest("form");
  if (editsOf(form)) form.reset();
  else for (const field of fieldsOf(form)) if (!field.matches("select")) field.value = "";
  for (const box of form.querySelectorAll(BOXES)) box.checked = false;
  document.dispatchEvent(new CustomEvent("pooldesk:emptied", { detail: { form } }));
  write(keyOf(form), null, storeOf(form));
  form.querySelector("[data-draft-note]").hidden = true;
  form.querySelector("textarea")?.focus();
});

document.addEventListener("pooldesk:taken", (event) => {
  if (event.detail.matches("[data-draft]")) write(keyOf(event.detail), null, storeOf(event.detail));
});

// Another tab has sent the draft that both kept. What is typed here and differs is a comment of its own, so it is kept
// again, under a request of its own.
window.addEventListener("storage", (event) => {
  const sent = event.newValue === null && event.key?.startsWith(PREFIX) && JSON.parse(event.oldValue);
  if (!sent?.sent) return;
  for (const form of document.querySelectorAll("form[data-draft]")) {
    if (keyOf(form) !== event.key || fieldsOf(form).every((field) => !isKept(field, editsOf(form)) || field.value === sent.values[field.name])) continue;
    const own = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    for (const mark of marksOf(form)) if (mark.name === "request_id") mark.value = own;
    keep(form);
  }
});

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.elt.closest?.(".menu")) return;
  settle();
  restoreAll();
});
settle();
restoreAll();
