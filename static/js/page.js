// The glue between htmx and whole pages. Views answer with complete documents; a request names the part it wants
// (hx-select). When the answer does not have that part (a conflict, a sign-in page, an outage), the whole page is shown.

const ANNOUNCE = "#announce";

/** The element whose hx-select rules a request: its own or an inherited one. */
function wantedPart(element) {
  const owner = element.closest("[hx-select]");
  const part = owner && owner.getAttribute("hx-select");
  return part && part !== "unset" ? part : null;
}

// Two answers may be under way for one place. Of two that were only asked for, the one asked for last is shown; and an
// answer whose place was replaced meanwhile goes to the element that stands there now, so that no answer to a form is lost.
const asked = new Map();
let told = false;
document.addEventListener("htmx:beforeRequest", (event) => {
  const { xhr, target, requestConfig } = event.detail;
  if (!target) return;
  if (requestConfig.verb === "get") asked.set(target.id, xhr);
  target.addEventListener("htmx:beforeSwap", (later) => {
    if (later.detail.xhr === xhr && !target.isConnected) route(later);
  });
});
document.addEventListener("htmx:beforeSwap", route);

/** Decides where an answer goes: into the place it was asked for, or over the whole page. */
function route(event) {
  const { xhr, requestConfig, target } = event.detail;
  const asking = requestConfig.verb === "get";
  const place = target.isConnected ? target : document.getElementById(target.id);
  event.detail.shouldSwap = false;
  if (asking && (!place || asked.get(target.id) !== xhr)) return;
  // The desk asks for too much just now. What the page asked for by itself can wait, and replaces nothing.
  if (xhr.status === 429 && requestConfig.elt.matches("[data-updates], [data-quiet], [hx-trigger^=every]")) return;
  const type = xhr.getResponseHeader("Content-Type") || "";
  if (!type.includes("text/html")) {
    if (xhr.status >= 400) showProblem(gettext("The server could not do that. What you typed is still here."), requestConfig.elt);
    return;
  }
  event.detail.shouldSwap = true;
  event.detail.isError = false;
  event.detail.target = place;
  const answer = new DOMParser().parseFromString(xhr.responseText, "text/html");
  const part = wantedPart(requestConfig.elt);
  const whole = answer.getElementById("page");
  if (!whole) return;
  if (part && answer.querySelector(part) && place) {
    // What a page asks for by itself takes no message away.
    if (!requestConfig.elt.matches("[data-quiet]") || answer.querySelector("#messages .notice")) {
      document.getElementById("messages")?.replaceChildren(...answer.getElementById("messages").childNodes);
      told = true;
    }
    if (xhr.status < 400 && part === "#ticket") nameShown(xhr.responseURL);
    if (xhr.status < 400 && !asking) {
      // The box is done: focus goes on to what was written, where single keys are shortcuts again.
      if (requestConfig.elt.matches("[data-reply]")) document.activeElement?.blur();
      document.dispatchEvent(new CustomEvent("pooldesk:taken", { detail: requestConfig.elt }));
      const { done, doneNote } = requestConfig.elt.dataset;
      if (done) announce(requestConfig.elt.querySelector("[name=internal]:checked") ? doneNote : done);
    }
    return;
  }
  document.documentElement.lang = answer.documentElement.lang;
  document.documentElement.dir = answer.documentElement.dir;
  event.detail.target = document.getElementById("page");
  event.detail.selectOverride = "#page";
  event.detail.swapOverride = "outerHTML show:window:top";
  if (xhr.status < 400 && xhr.responseURL && xhr.responseURL !== location.href) {
    history.pushState({ htmx: true }, "", xhr.responseURL);
  }
}

/** The address goes on to name what is shown: a ticket that was read at an old entry is shown at its latest ones. */
function nameShown(address) {
  const { pathname, search } = new URL(address || location.href, location.href);
  if (pathname === location.pathname && search !== location.search) history.replaceState(history.state, "", pathname + search);
}

document.addEventListener("htmx:beforeRequest", (event) => {
  event.detail.target?.setAttribute("aria-busy", "true");
});
document.addEventListener("htmx:afterRequest", (event) => {
  event.detail.target?.removeAttribute("aria-busy");
});

// htmx keeps focus on an element whose id is still there. When it is gone, focus goes to the heading of the place where
// the person was, not back to the top of the document.
document.addEventListener("htmx:afterSettle", (event) => {
  const swapped = event.detail.elt;
  const asker = event.detail.requestConfig?.elt;  // gone from the page perhaps, with what was around it
  const summary = swapped.querySelector?.("[data-error-summary]");
  if (summary) {
    summary.focus();
  } else if (asker?.matches("[data-quiet], [data-updates]")) {
    // Nobody asked for this: what has focus keeps it, and nothing else gets it.
  } else if (document.activeElement === document.body || !document.activeElement) {
    const home = document.getElementById(asker?.closest("[data-focus-home]")?.dataset.focusHome);
    const landing = home || document.querySelector("#main [data-focus-after]") || document.getElementById("main");
    if (landing && !landing.hasAttribute("tabindex")) landing.tabIndex = -1;
    landing?.focus({ preventScroll: true });
    home?.scrollIntoView({ block: "nearest" });
  }
  if (told) document.querySelector("#messages .notice")?.scrollIntoView({ block: "nearest" });
  told = false;
  const news = swapped.matches?.("[data-announce]") ? swapped : swapped.querySelector?.("[data-announce]");
  if (news) announce(news.dataset.announce);
  makeScrollersReachable(document);
});

document.addEventListener("htmx:sendError", (event) => {
  showProblem(gettext("The server cannot be reached. What you typed is still here: check the connection and try again."), event.detail.requestConfig.elt);
});
document.addEventListener("htmx:timeout", (event) => {
  showProblem(gettext("The server did not answer in time. It may still have worked: reload before you send it again."), event.detail.requestConfig.elt);
});

function announce(text) {
  const region = document.querySelector(ANNOUNCE);
  if (!region) return;
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 50);
}

/** Shows a notice made from the page's own template element, beside the form that failed where there is room for it. */
function showProblem(text, element) {
  const template = document.getElementById("problem-template");
  const place = element?.querySelector?.("[data-problems]") || document.getElementById("messages");
  if (!template || !place) return;
  const notice = template.content.cloneNode(true);
  notice.querySelector("[data-text]").textContent = text;
  place.replaceChildren(notice);
  place.scrollIntoView({ block: "nearest" });
}

/** Boxes that scroll sideways or down can be scrolled by the keyboard: they get a tab stop, others do not. */
function makeReachable(box) {
  if (box.scrollWidth <= box.clientWidth + 1 && box.scrollHeight <= box.clientHeight + 1) {
    box.removeAttribute("tabindex");
    return;
  }
  box.tabIndex = 0;
  if (!box.hasAttribute("role") && !box.matches("table, dd")) {
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", box.dataset.scroller || gettext("Code, scrolls"));
  }
}

// A window that is turned and a fold that is opened make boxes scroll that did not.
const sizes = new ResizeObserver((entries) => entries.forEach((entry) => makeReachable(entry.target)));

function makeScrollersReachable(root) {
  for (const box of root.querySelectorAll(".prose pre, .prose table, [data-scroller]")) {
    makeReachable(box);
    sizes.observe(box);
  }
}

/** What is to be copied has a button for it where the browser can. */
function offerCopies(root) {
  if (!navigator.clipboard) return;
  for (const place of root.querySelectorAll("[data-copy]")) place.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent.trim());
    button.textContent = gettext("Copied");
    announce(gettext("Copied"));
  } catch {
    showProblem(gettext("The browser did not allow it. Select the text and copy it."), button);
  }
});

makeScrollersReachable(document);
offerCopies(document);
document.querySelector("[data-error-summary]")?.focus();

document.addEventListener("click", (event) => {
  const close = event.target.closest("[data-dismiss]");
  if (!close) return;
  close.closest(".notice")?.remove();
  document.getElementById("main")?.focus({ preventScroll: true });
});

// What is selected on the page goes with a form that is about it, such as a redaction. Pressing the button may clear it.
let selected = "";
document.addEventListener("pointerdown", () => { selected = String(getSelection()); }, true);
document.addEventListener("submit", (event) => {
  const field = event.target.querySelector("[data-selection]");
  if (field) field.value = String(getSelection()) || selected;
}, true);
