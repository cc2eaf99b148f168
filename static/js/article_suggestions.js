// Articles that may answer what somebody writes in the public form, below its subject. Without a script they are on the
// page that a refused form comes back with.

const place = document.querySelector("[data-suggest-articles]");
const form = place.closest("form");
let timer = 0;
let asked = "";
let hasNone = false;  // the desk has no help centre

async function suggest() {
  const text = [form.elements.subject?.value, form.elements.body?.value].filter(Boolean).join(" ").slice(0, 500).trim();
  if (text === asked || hasNone) return;
  asked = text;
  try {
    const address = `${place.dataset.suggestArticles}?${new URLSearchParams({ q: text, lang: document.documentElement.lang })}`;
    const answer = text ? await fetch(address) : null;
    hasNone = answer?.status === 404;
    if (asked === text) place.innerHTML = answer?.ok ? await answer.text() : "";
  } catch {
    // Out of reach: the form is of use without.
  }
}

form.addEventListener("input", (event) => {
  if (!["subject", "body"].includes(event.target.name)) return;
  clearTimeout(timer);
  timer = setTimeout(suggest, 700);
});
