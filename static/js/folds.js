// Long texts are folded to a readable height, with a button that shows the rest. Without scripts they stand in full.

const ROOM = 640;  // pixels, above which a text is folded
const LEFT = 160;  // pixels that are not worth a button

function fold(text) {
  if (text.dataset.foldReady) return;
  text.dataset.foldReady = "true";
  if (text.scrollHeight < ROOM + LEFT) return;
  text.classList.add("folded");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button-quiet fold-button no-print";
  button.textContent = gettext("Show all");
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", () => {
    const open = text.classList.toggle("folded");
    button.textContent = open ? gettext("Show all") : gettext("Show less");
    button.setAttribute("aria-expanded", String(!open));
    if (open) text.parentElement.scrollIntoView({ block: "nearest" });
  });
  text.after(button);
}

// What has focus or is searched for must be seen.
document.addEventListener("focusin", (event) => {
  const text = event.target.closest?.(".folded");
  if (text) text.nextElementSibling?.click();
});

const foldAll = () => document.querySelectorAll("[data-folds]").forEach(fold);
document.addEventListener("htmx:afterSettle", foldAll);
foldAll();
