// The composer: buttons and keys for Markdown, a preview made by the server, and quotes of what is selected. Texts are
// put in so that the browser's own undo takes them back. Without a script the form has a button for the preview.

const MARKS = { bold: "**", italic: "_", code: "`" };
const TOOLS = [
  { act: "bold", label: () => gettext("Bold"), face: "B", key: "b" },
  { act: "italic", label: () => gettext("Italic"), face: "I", key: "i" },
  { act: "code", label: () => gettext("Code"), face: "<>", key: "e" },
  { act: "link", label: () => gettext("Link"), key: "k", shift: true },
  { act: "list", label: () => gettext("List"), key: "8", shift: true, code: "Digit8" },
  { act: "quote", label: () => gettext("Quote"), key: "9", shift: true, code: "Digit9" },
];
const announce = (text) => { const region = document.getElementById("announce"); if (region) region.textContent = text; };

function insert(field, begin, end, text) {
  field.focus();
  field.setSelectionRange(begin, end);
  // The older command alone lets Ctrl+Z take it back.
  if (!document.execCommand("insertText", false, text)) {
    field.setRangeText(text, begin, end, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

document.addEventListener("pooldesk:insert", (event) => insert(event.target, event.detail.begin, event.detail.end, event.detail.text));

// --- Markdown ---

/** Puts marks around what is selected, or takes them away. */
function mark(field, sign) {
  const { selectionStart: begin, selectionEnd: end, value } = field;
  const size = sign.length;
  const inside = value.slice(begin, end);
  if (value.slice(begin - size, begin) === sign && value.slice(end, end + size) === sign) {
    insert(field, begin - size, end + size, inside);
    return field.setSelectionRange(begin - size, end - size);
  }
  if (sign === "`" && inside.includes("\n")) return fence(field, begin, end, inside);
  insert(field, begin, end, `${sign}${inside}${sign}`);
  field.setSelectionRange(begin + size, end + size);
}

function fence(field, begin, end, inside) {
  insert(field, begin, end, `\`\`\`\n${inside}\n\`\`\``);
  field.setSelectionRange(begin + 4, end + 4);
}

function link(field) {
  const { selectionStart: begin, selectionEnd: end, value } = field;
  const inside = value.slice(begin, end);
  const isAddress = /^https?:\/\/\S+$/.test(inside);
  insert(field, begin, end, isAddress ? `[](${inside})` : `[${inside}](https://)`);
  // The cursor goes to the part that is missing.
  if (isAddress) field.setSelectionRange(begin + 1, begin + 1);
  else field.setSelectionRange(end + 3, end + 11);
}

/** Begins each selected line with a sign, or takes it away where each has it. */
function lines(field, sign) {
  const begin = field.value.lastIndexOf("\n", field.selectionStart - 1) + 1;
  const next = field.value.indexOf("\n", field.selectionEnd);
  const end = next < 0 ? field.value.length : next;
  const all = field.value.slice(begin, end).split("\n");
  const has = all.every((line) => line.startsWith(sign));
  const text = all.map((line) => (has ? line.slice(sign.length) : sign + line)).join("\n");
  insert(field, begin, end, text);
  if (all.length > 1) field.setSelectionRange(begin, begin + text.length);
}

function format(field, act) {
  if (act in MARKS) mark(field, MARKS[act]);
  else if (act === "link") link(field);
  else lines(field, act === "list" ? "- " : "> ");
}

// --- the toolbar ---

const hasCommandKey = /Mac|iP(hone|ad)/.test(navigator.platform);
const keyName = (tool) => `${hasCommandKey ? "⌘" : "Ctrl"}+${tool.shift ? "Shift+" : ""}${tool.key.toUpperCase()}`;

function button(label, face, act, title = label) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", className: `tool tool-${act}`, textContent: face, title, tabIndex: -1 });
  made.dataset.tool = act;
  if (face !== label) made.setAttribute("aria-label", label);
  return made;
}

function equip(field) {
  if (field.dataset.equipped) return;
  field.dataset.equipped = "true";
  const bar = document.createElement("div");
  bar.className = "tools no-print";
  bar.setAttribute("role", "toolbar");
  bar.setAttribute("aria-label", gettext("Formatting"));
  bar.setAttribute("aria-controls", field.id);
  for (const tool of TOOLS) {
    const label = tool.label();
    const made = button(label, tool.face ?? label, tool.act, `${label} (${keyName(tool)})`);
    made.dataset.noCommand = "";
    bar.append(made);
  }
  if (field.dataset.answers) bar.append(button(gettext("Ready answer"), gettext("Ready answer"), "answer", `${gettext("Ready answer")} (;)`));
  if (!field.form.querySelector("[name=then][value=preview]:not([data-without-js])")) {
    const made = button(gettext("Preview"), gettext("Preview"), "preview");
    made.setAttribute("aria-pressed", "false");
    bar.append(made);
  }
  bar.firstElementChild.tabIndex = 0;
  field.before(bar);
}

/** Buttons that only browsers without a script need would take Enter in a line of the form for themselves. */
function equipAll() {
  document.querySelectorAll("textarea[data-markdown]").forEach(equip);
  document.querySelectorAll("[data-without-js]").forEach((part) => part.remove());
}

const fieldOf = (bar) => document.getElementById(bar.getAttribute("aria-controls"));

document.addEventListener("click", (event) => {
  const pressed = event.target.closest?.("[data-tool]");
  if (!pressed) return;
  const field = fieldOf(pressed.parentElement);
  const act = pressed.dataset.tool;
  if (act === "preview") return preview(field, pressed);
  if (field.hidden) preview(field, pressed.parentElement.querySelector("[data-tool=preview]"));
  if (act !== "answer") return format(field, act);
  field.focus();
  const before = field.value.slice(0, field.selectionStart);
  insert(field, field.selectionStart, field.selectionEnd, `${before && !/\s$/.test(before) ? " " : ""};`);
});

// One stop for Tab; arrows move among the buttons, as in other toolbars.
document.addEventListener("keydown", (event) => {
  const here = event.target.closest?.(".tools > [data-tool]");
  if (!here || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
  const all = [...here.parentElement.children];
  const step = event.key === (document.dir === "rtl" ? "ArrowLeft" : "ArrowRight") ? 1 : -1;
  const next = event.key === "Home" ? all[0] : event.key === "End" ? all.at(-1) : all[(all.indexOf(here) + step + all.length) % all.length];
  for (const one of all) one.tabIndex = one === next ? 0 : -1;
  next.focus();
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (!field.matches?.("textarea[data-markdown]") || event.altKey || event.isComposing || event.ctrlKey === event.metaKey) return;
  const tool = TOOLS.find((one) => Boolean(one.shift) === event.shiftKey && (one.code ? event.code === one.code : event.key.toLowerCase() === one.key));
  if (!tool) return;
  event.preventDefault();
  format(field, tool.act);
});

// --- the preview ---

async function preview(field, pressed) {
  const shows = field.hidden;
  let panel = field.parentElement.querySelector(":scope > .preview");
  if (shows) {
    panel?.remove();
    field.hidden = false;
    pressed.setAttribute("aria-pressed", "false");
    return field.focus();
  }
  const sent = new FormData();
  for (const input of field.form.querySelectorAll("input[name=csrfmiddlewaretoken], input[name=_page]")) sent.set(input.name, input.value);
  sent.set("body", field.value);
  try {
    const answer = await fetch(document.getElementById("page").dataset.preview, { method: "POST", body: sent });
    if (!answer.ok) throw new Error(answer.statusText);
    panel = document.createElement("div");
    panel.className = "preview";
    panel.tabIndex = 0;
    panel.setAttribute("role", "region");
    panel.setAttribute("aria-label", gettext("Preview"));
    panel.innerHTML = await answer.text();
  } catch {
    return announce(gettext("The preview could not be loaded. Your text is still here."));
  }
  field.hidden = true;
  field.after(panel);
  pressed.setAttribute("aria-pressed", "true");
  announce(gettext("Preview is shown. Press the button again to go on writing."));
}

// --- quotes ---

const box = () => document.querySelector("[data-reply] textarea[data-markdown]");
let quoter = null;

/** The text that is selected in the description or an entry of the ticket; "" for none. */
function selected() {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed || !box()) return "";
  const within = selection.getRangeAt(0).commonAncestorContainer;
  const place = (within.nodeType === Node.ELEMENT_NODE ? within : within.parentElement)?.closest("#ticket .prose, #ticket .activity");
  return place && !place.closest("form") ? selection.toString().trim() : "";
}

function quote() {
  const text = selected();
  const field = box();
  if (!text) return false;
  if (field.hidden) field.form.querySelector("[data-tool=preview]")?.click();
  const quoted = text.split("\n").map((line) => `> ${line}`.trimEnd()).join("\n");
  const end = field.value.length;
  const gap = !field.value.trim() ? "" : field.value.endsWith("\n\n") ? "" : field.value.endsWith("\n") ? "\n" : "\n\n";
  getSelection().removeAllRanges();
  insert(field, field.value.trim() ? end : 0, end, `${gap}${quoted}\n\n`);
  field.scrollIntoView({ block: "center" });
  hideQuoter();
  return true;
}

const hideQuoter = () => { quoter?.remove(); };

document.addEventListener("pooldesk:quote", (event) => { if (quote()) event.preventDefault(); });

let resting = 0;
document.addEventListener("selectionchange", () => {
  clearTimeout(resting);
  resting = setTimeout(() => {
    if (!selected()) return hideQuoter();
    if (!quoter) {
      quoter = document.createElement("button");
      Object.assign(quoter, { type: "button", className: "button quoter no-print", textContent: gettext("Quote in reply"), title: gettext("Quote in your reply (r)") });
      quoter.addEventListener("mousedown", (event) => event.preventDefault()); // the selection stays
      quoter.addEventListener("click", quote);
    }
    const place = getSelection().getRangeAt(0).getBoundingClientRect();
    document.getElementById("page").append(quoter);
    quoter.style.setProperty("top", `${place.bottom + scrollY + 6}px`);
    quoter.style.setProperty("left", `${Math.min(Math.max(place.left, 8), innerWidth - 100) + scrollX}px`);
  }, 150);
});

document.addEventListener("htmx:afterSettle", equipAll);
equipAll();
