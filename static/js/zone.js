// Tells the server in which time zone this browser is, once, for a person whose profile has none.

const TOLD = "pooldesk-zone-told";

const form = document.getElementById("find-zone");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (form && zone && sessionStorage.getItem(TOLD) !== zone) {
  form.elements.zone.value = zone;
  // The page may be left at once, and the server takes half a form for a broken one.
  fetch(form.action, { method: "POST", body: new FormData(form), credentials: "same-origin", keepalive: true })
    .then((answer) => { if (answer.ok) sessionStorage.setItem(TOLD, zone); })
    .catch(() => {});  // asked again by the next page
}
