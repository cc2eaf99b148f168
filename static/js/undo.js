// The button that undoes the last change is offered for some seconds, and longer while somebody points at it.

const AGAIN = 2000;  // milliseconds

function offer(form) {
  form.dataset.offered = "true";
  const end = () => {
    if (!form.isConnected) return;
    if (form.closest(".notice").matches(":hover, :focus-within")) setTimeout(end, AGAIN);
    else form.closest(".notice").remove();
  };
  setTimeout(end, 1000 * Number(form.dataset.undo || 10));
}

function offerAll() {
  for (const form of document.querySelectorAll(".notice form[data-undo]:not([data-offered])")) offer(form);
}

offerAll();
document.addEventListener("htmx:afterSettle", offerAll);
