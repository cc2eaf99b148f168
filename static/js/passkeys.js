// Passkeys: ask the browser to make one or to sign with one, and send what it answers in the form around the button.
// A form on the page to sign in lets the browser offer passkeys beside the field of the address too.

const decoded = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const encoded = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const withIds = (list) => (list ?? []).map((one) => ({ ...one, id: decoded(one.id) }));

/** The options of a creation or a request, whose bytes are text in JSON. */
function asBytes(options) {
  const bytes = { ...options, challenge: decoded(options.challenge) };
  if (options.user) bytes.user = { ...options.user, id: decoded(options.user.id) };
  if (options.excludeCredentials) bytes.excludeCredentials = withIds(options.excludeCredentials);
  if (options.allowCredentials) bytes.allowCredentials = withIds(options.allowCredentials);
  return bytes;
}

/** What the browser answered, with its bytes as text. */
function asText(credential) {
  const answer = credential.response;
  const names = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  const response = Object.fromEntries(names.filter((name) => answer[name]).map((name) => [name, encoded(answer[name])]));
  return JSON.stringify({
    id: credential.id, rawId: encoded(credential.rawId), type: credential.type, response, clientExtensionResults: {},
  });
}

const SENTENCES = {
  InvalidStateError: () => gettext("This device has a passkey for your account already."),
  NotAllowedError: () => gettext("No passkey was used. Try again."),
  SecurityError: () => gettext("This browser makes no passkeys for this address."),
};

async function ask(form, more = {}) {
  const answer = await fetch(form.dataset.options, { credentials: "same-origin", cache: "no-store" });
  const asked = await answer.json();
  if (!answer.ok) throw new Error(asked.problem);
  const credential = await navigator.credentials[form.dataset.passkey]({ publicKey: asBytes(asked.publicKey), ...more });
  form.elements.credential.value = asText(credential);
  form.elements.challenge.value = asked.challenge;
  form.requestSubmit();
}

let offering = null;  // the offer beside the field, which must end before a button asks

async function start(form) {
  const problem = form.querySelector("[data-passkey-problem]");
  problem.hidden = true;
  offering?.abort();
  try {
    await ask(form);
  } catch (error) {
    problem.textContent = SENTENCES[error.name]?.() ?? (error.message || gettext("That did not work. Try again."));
    problem.hidden = false;
  }
}

async function offer(form) {
  if (!await globalThis.PublicKeyCredential?.isConditionalMediationAvailable?.()) return;
  offering = new AbortController();
  // Whatever ends an offer that nobody asked for is nothing to tell anybody.
  await ask(form, { mediation: "conditional", signal: offering.signal }).catch(() => {});
}

document.addEventListener("click", (event) => {
  const form = event.target.closest("[data-passkey-start]")?.closest("form[data-passkey]");
  if (form) start(form);
});

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!globalThis.PublicKeyCredential) form.hidden = true;
  else if ("passkeyOffers" in form.dataset) offer(form);
}
