// The public form: calculates its proof while somebody types, and holds it until the proof is there. Where a worker
// cannot run, it is sent without, as by a browser without JavaScript.

const form = document.querySelector("form[data-proof]");
const challenge = form.elements.challenge;
const proof = form.elements.proof;
const status = form.querySelector("[data-proof-status]");
let submitter = null;
let worker = null;
let failed = false;

function settle() {
  status.textContent = "";
  if (submitter) form.requestSubmit(submitter.isConnected ? submitter : undefined);
}

function begin() {
  if (worker || proof.value || failed) return;
  try {
    worker = new Worker(form.dataset.worker);
  } catch {
    failed = true;
    return;
  }
  worker.addEventListener("message", (event) => {
    proof.value = event.data;
    worker.terminate();
    settle();
  });
  worker.addEventListener("error", () => {
    failed = true;
    settle();
  });
  worker.postMessage({ challenge: challenge.value, bits: Number(challenge.dataset.bits) });
}

let sent = false;
form.addEventListener("submit", (event) => {
  if (sent) {
    event.preventDefault();
    return;
  }
  begin();
  if (!proof.value && !failed) {
    event.preventDefault();
    submitter = event.submitter || form.querySelector("[type=submit]");
    status.textContent = status.dataset.waiting;
    return;
  }
  sent = true;
});
window.addEventListener("pageshow", () => { sent = false; });

form.addEventListener("focusin", begin);
if (form.contains(document.activeElement) || document.querySelector(".error-summary")) begin();
