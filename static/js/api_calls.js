// The forms of the API's page: each sends one request with the key that was typed, and shows what came back. The key is
// read where it was typed and kept nowhere.

const key = () => document.getElementById("api-key").value.trim();

const SHOWN = ["ETag", "Idempotency-Replayed", "Link", "Location", "RateLimit", "Retry-After", "X-Request-Id"];

function request(form) {
  const query = new URLSearchParams();
  const headers = { Authorization: `Bearer ${key()}` };
  let path = form.dataset.path;
  let body;
  for (const field of form.querySelectorAll("[data-place]")) {
    if (!field.value) continue;
    if (field.dataset.place === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    if (field.dataset.place === "query") query.append(field.name, field.value);
    if (field.dataset.place === "header") headers[field.name] = field.value;
    if (field.dataset.place === "body") {
      headers["Content-Type"] = "application/json";
      body = field.value;
    }
  }
  const url = query.size ? `${path}?${query}` : path;
  return [url, { method: form.dataset.method, headers, body, credentials: "omit", cache: "no-store" }];
}

function readable(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

// A browser sends no other characters in a header, and says of them only that something failed.
function unsendable(headers) {
  const [name] = Object.entries(headers).find(([, value]) => /[^\x20-\x7e]/.test(value)) ?? [];
  if (name === "Authorization") return "This is no API key, or something was copied with it: a key has only letters from a to z, digits and _.";
  return name && `The header ${name} can have only letters from a to z, digits and the signs of a plain keyboard.`;
}

async function said(form) {
  const [url, how] = request(form);
  const refused = unsendable(how.headers);
  if (refused) return refused;
  const answer = await fetch(url, how);
  const heads = SHOWN.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
  return [`${how.method} ${url}`, `${answer.status} ${answer.statusText}`, ...heads, "", readable(await answer.text())].join("\n");
}

// What a link leads to is unfolded.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target?.matches("details")) target.open = true;
}

addEventListener("hashchange", unfold);
unfold();

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.matches("[data-api-key]")) event.preventDefault();
  if (!form.matches("[data-api-call]")) return;
  event.preventDefault();
  const place = form.querySelector("[data-answer]");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    place.querySelector("code").textContent = key() ? await said(form) : "Type your API key at the top of this page first.";
  } catch {
    place.querySelector("code").textContent = "The API cannot be reached from this page now.";
  } finally {
    button.disabled = false;
    place.hidden = false;
  }
});
