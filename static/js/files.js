// Files of a form: chosen by the button, dropped or pasted, each is sent to the bucket at once by a form that the server
// signs, with its progress, and named in the form by its id. Sending the form waits until all have arrived.
// Loaded before forms.js, which holds a form that is sent.

const fieldOf = (form) => form?.querySelector("[data-files]");
const listOf = (field) => field.querySelector("[data-file-list]");
const sending = (form) => form.querySelectorAll("[data-file-list] [data-sending]");

// What is said of a file. Pages of people outside the desks have theirs at the field.
const WORDS = {
  remove: (values) => gettext("Remove", values),
  removeFile: (values) => gettext("Remove {name}", values),
  removed: (values) => gettext("{name} removed.", values),
  tooLarge: (values) => gettext("is larger than {size}", values),
  empty: (values) => gettext("is empty", values),
  tooMany: (values) => gettext("is one too many: {most} can be attached", values),
  failed: (values) => gettext("{why}. It is not attached.", values),
  refusedByPage: (values) => gettext("could not be sent: the desk refused it. Reload the page and try again", values),
  refused: (values) => gettext("was refused: {problem}", values),
  attached: (values) => gettext("attached", values),
  fileAttached: (values) => gettext("{name} attached.", values),
  notStored: (values) => gettext("could not be stored. Add it again", values),
  noConnection: (values) => gettext("could not be sent: check the connection, then add it again", values),
  waits: (values) => gettext("It is sent as soon as the files have arrived.", values),
};

function word(field, name, values = {}) {
  if (!field.dataset.words) return WORDS[name](values);
  return JSON.parse(field.dataset.words)[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

function say(field, text) {
  const status = field.querySelector("[data-file-status]");
  status.textContent = "";
  requestAnimationFrame(() => { status.textContent = text; });
}

const sizeOf = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} KB` : `${(bytes / 1e6).toFixed(1)} MB`);

/** A screenshot has no name of its own: browsers call each "image.png". */
function nameOf(file, isPasted) {
  if (!isPasted || (file.name && !/^image\.\w+$/.test(file.name))) return file.name;
  const ending = (file.type.split("/")[1] || "png").replace("jpeg", "jpg");
  const now = new Date(Date.now() - new Date().getTimezoneOffset() * 60000).toISOString();
  return `screenshot ${now.slice(0, 10)} ${now.slice(11, 19).replaceAll(":", ".")}.${ending}`;
}

function add(field, files, isPasted = false) {
  const list = listOf(field);
  for (const file of files) {
    const name = nameOf(file, isPasted);
    const item = list.appendChild(document.createElement("li"));
    item.className = "file";
    const title = item.appendChild(document.createElement("span"));
    title.className = "file-name";
    title.dir = "auto";
    title.textContent = name;
    const told = item.appendChild(document.createElement("span"));
    told.className = "muted";
    const remove = item.appendChild(document.createElement("button"));
    remove.type = "button";
    remove.className = "link-button";
    remove.textContent = word(field, "remove");
    remove.setAttribute("aria-label", word(field, "removeFile", { name }));
    const aborting = new AbortController();
    remove.addEventListener("click", () => {
      aborting.abort();
      const form = field.closest("form");
      const next = item.nextElementSibling?.querySelector("button") || field.querySelector("input[type=file]");
      item.remove();
      next.focus();
      say(field, word(field, "removed", { name }));
      count(field);
      settle(form);
    });
    if (file.size > Number(field.dataset.mostBytes)) fail(field, item, told, word(field, "tooLarge", { size: field.dataset.mostSize }));
    else if (!file.size) fail(field, item, told, word(field, "empty"));
    else if (list.querySelectorAll("li:not([data-failed])").length > Number(field.dataset.most)) fail(field, item, told, word(field, "tooMany", { most: field.dataset.most }));
    else send(field, item, told, file, name, aborting.signal);
  }
  count(field);
}

function fail(field, item, told, why) {
  delete item.dataset.sending;
  item.dataset.failed = "";
  told.textContent = ` ${word(field, "failed", { why })}`;
  told.className = "file-problem";
  say(field, `${item.querySelector(".file-name").textContent} ${why}.`);
}

async function send(field, item, told, file, name, signal) {
  const form = field.closest("form");
  item.dataset.sending = "";
  item.dataset.bytes = file.size;
  told.textContent = ` ${sizeOf(file.size)} · 0%`;
  try {
    const asked = new FormData();
    for (const guard of form.querySelectorAll("input[name=csrfmiddlewaretoken], input[name=_page]")) asked.append(guard.name, guard.value);
    asked.append("name", name);
    asked.append("size", file.size);
    const answer = await fetch(field.dataset.files, { method: "POST", body: asked, credentials: "same-origin", signal });
    const isTold = (answer.headers.get("Content-Type") || "").includes("json");
    if (!isTold) throw new Error(word(field, "refusedByPage"));
    const begun = await answer.json();
    if (begun.problem) { fail(field, item, told, word(field, "refused", { problem: begun.problem.replace(/\.$/, "") })); return; }
    await post(field, begun, file, signal, (share) => { told.textContent = ` ${begun.size} · ${Math.round(share * 100)}%`; });
    const kept = item.appendChild(document.createElement("input"));
    kept.type = "hidden";
    kept.name = "files";
    kept.value = begun.id;
    told.textContent = ` ${begun.size} · ${word(field, "attached")}`;
    delete item.dataset.sending;
    say(field, word(field, "fileAttached", { name }));
  } catch (error) {
    if (signal.aborted) return;
    fail(field, item, told, error instanceof TypeError ? word(field, "noConnection") : error.message);
  } finally {
    count(field);
    settle(form);
  }
}

/** Sends a file by a signed form. XMLHttpRequest, because fetch tells no progress of what it sends. */
function post(field, begun, file, signal, tell) {
  return new Promise((done, failed) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(begun.fields)) body.append(name, value);
    body.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", begun.url);
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) tell(event.loaded / event.total); });
    request.addEventListener("load", () => {
      if (request.status < 300) done();
      else failed(new Error(word(field, "notStored")));
    });
    request.addEventListener("error", () => failed(new TypeError()));
    signal.addEventListener("abort", () => { request.abort(); failed(new Error("removed")); });
    request.send(body);
  });
}

/** Warns of what makes a letter too large for some mailboxes. */
function count(field) {
  const warning = field.querySelector("[data-mail-warning]");
  if (!warning) return;
  const bytes = [...listOf(field).querySelectorAll("li[data-bytes]:not([data-failed])")]
    .filter((item) => item.querySelector("input[type=checkbox]")?.checked !== false)
    .reduce((sum, item) => sum + Number(item.dataset.bytes), 0);
  warning.hidden = bytes <= Number(field.dataset.mailBytes);
}

// --- sending the form ---

const waiting = new WeakMap();  // the button by which a form was sent that waits for its files

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!fieldOf(form) || !sending(form).length) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  waiting.set(form, event.submitter);
  say(fieldOf(form), word(fieldOf(form), "waits"));
}, true);

function settle(form) {
  if (!form || !waiting.has(form) || sending(form).length) return;
  const submitter = waiting.get(form);
  waiting.delete(form);
  // A file that could not be attached is shown first: whoever sends again sends without it.
  if (form.querySelector("[data-file-list] [data-failed]")) return;
  form.requestSubmit(submitter?.isConnected ? submitter : undefined);
}

// A preview that is gone, such as that of a file which was removed meanwhile, leaves no broken picture.
document.addEventListener("error", (event) => {
  if (event.target.matches?.(".file-preview img")) event.target.closest(".file-preview").remove();
}, true);

// --- the ways in ---

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-files] input[name=files]")) count(event.target.closest("[data-files]"));
  if (!event.target.matches("[data-files] input[type=file]")) return;
  const field = event.target.closest("[data-files]");
  add(field, [...event.target.files]);
  event.target.value = "";  // else it would be sent within the form, too
});

document.addEventListener("paste", (event) => {
  const field = fieldOf(event.target.closest?.("form[data-takes-files]"));
  const files = [...(event.clipboardData?.files || [])];
  // What is copied from a text program comes as text and as a picture of it: then the text is meant.
  if (!field || !files.length || event.clipboardData.types.includes("text/plain")) return;
  event.preventDefault();
  add(field, files, true);
});

const dropForm = (event) => ([...(event.dataTransfer?.types || [])].includes("Files") ? event.target.closest?.("form[data-takes-files]") : null);

for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    const form = dropForm(event);
    if (!form) return;
    event.preventDefault();
    form.dataset.dropping = "";
  });
}
document.addEventListener("dragleave", (event) => {
  const form = event.target.closest?.("form[data-dropping]");
  if (form && !form.contains(event.relatedTarget)) delete form.dataset.dropping;
});
document.addEventListener("drop", (event) => {
  const form = dropForm(event);
  if (!form) return;
  event.preventDefault();
  delete form.dataset.dropping;
  add(fieldOf(form), [...event.dataTransfer.files]);
});

// A file that comes to rest beside the form would open in the place of the page, and take what was typed with it.
for (const kind of ["dragover", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (document.querySelector("form[data-takes-files]") && [...(event.dataTransfer?.types || [])].includes("Files")) event.preventDefault();
  });
}
