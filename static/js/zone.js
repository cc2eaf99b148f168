// Tells the server in which time zone this browser is, once, for a person whose profile has none.

const TOLD = "pooldesk-zone-told";

const form = document.getElementById("find-zone");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (form && zone && sessionStorage.getItem(TOLD) !== zone) {
  form.elements.zone.value = zone;
  fetch(form.action, { method: "POST", body: new FormData(form), credentials: "same-origin" })
    .then((answer) => { if (answer.ok) sessionStorage.setItem(TOLD, zone); })
    .catch(() => {});  // asked again by the next page
}
