// Forms: one submit at a time, selects that submit themselves, Ctrl+Enter, passwords that can be shown.

/** Keeps the button that was pressed from being pressed again; its name and value must be sent first. */
function hold(form, submitter) {
  form.dataset.busy = "true";
  setTimeout(() => {
    if (!submitter) return;
    submitter.setAttribute("aria-busy", "true");
    submitter.setAttribute("aria-disabled", "true");
  });
}

function release(form) {
  delete form.dataset.busy;
  for (const button of form.querySelectorAll("[aria-busy]")) {
    button.removeAttribute("aria-busy");
    button.removeAttribute("aria-disabled");
  }
}

// In the capture phase: a second submit must be stopped before htmx sees it.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (event.submitter?.matches("[data-inert]")) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  if ("download" in form.dataset || event.submitter?.formTarget === "_blank") return;  // the page stays, and its button with it
  if (form.dataset.busy) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  hold(form, event.submitter);
}, true);

document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.requestConfig.elt.closest("form");
  if (form) release(form);
});

// A page that comes back from the history cache has its buttons as they were left.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-busy]")) release(form);
});

// A select that submits on change. From the keyboard each arrow key is a change, so wait until it rests, or for Enter.
let byKeyboard = false;
let resting = 0;
let changed = null;
function submitChanged() {
  clearTimeout(resting);
  if (!changed) return;
  // Another form's answer may have replaced this part of the page meanwhile.
  const field = changed.isConnected ? changed : document.getElementById(changed.id);
  if (field && field !== changed) field.value = changed.value;
  changed = null;
  field?.form?.requestSubmit();
}
document.addEventListener("keydown", (event) => {
  byKeyboard = true;
  if (event.key !== "Enter" || event.target !== changed) return;
  event.preventDefault();
  submitChanged();
}, true);
document.addEventListener("pointerdown", () => { byKeyboard = false; }, true);
document.addEventListener("change", (event) => {
  const field = event.target.closest("[data-autosubmit]");
  if (!field) return;
  clearTimeout(resting);
  changed = field;
  resting = setTimeout(submitChanged, byKeyboard ? 900 : 0);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target.closest("form[data-submit-keys]");
  if (!form || !event.target.matches("textarea, input")) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("[data-submit-default]") || undefined);
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-reveal]");
  if (!button) return;
  const input = document.getElementById(button.getAttribute("aria-controls"));
  const show = input.type === "password";
  input.type = show ? "text" : "password";
  button.textContent = show ? gettext("Hide") : gettext("Show");
  button.setAttribute("aria-pressed", String(show));
});

document.addEventListener("submit", (event) => {
  for (const button of event.target.querySelectorAll("[data-reveal][aria-pressed=true]")) button.click();
});

// Names of countries come in English; the browser knows those of the page's language.
if (document.documentElement.lang !== "en") {
  const names = new Intl.DisplayNames(document.documentElement.lang, { type: "region", fallback: "none" });
  for (const select of document.querySelectorAll("select[data-countries]")) {
    const [none, ...countries] = select.options;
    for (const option of countries) {
      if (/^[A-Z]{2}$/.test(option.value)) option.textContent = names.of(option.value) || option.textContent;
    }
    const chosen = select.value;
    countries.sort((one, other) => one.textContent.localeCompare(other.textContent));
    select.replaceChildren(none, ...countries);
    select.value = chosen;
  }
}
