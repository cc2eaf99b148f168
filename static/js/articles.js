// "Insert link" beside an article that is offered for an answer: the link goes where the cursor stands in the text.

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-insert]");
  const field = button?.closest("form")?.querySelector("textarea");
  if (!field) return;
  const before = field.value.slice(0, field.selectionStart);
  const gap = before && !/\s$/.test(before) ? " " : "";
  const { selectionStart: begin, selectionEnd: end } = field;
  field.dispatchEvent(new CustomEvent("pooldesk:insert", { bubbles: true, detail: { begin, end, text: `${gap}${button.dataset.insert}` } }));
});
