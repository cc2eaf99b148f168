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

async function said(form) {
  const [url, how] = request(form);
  const answer = await fetch(url, how);
  const heads = SHOWN.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
  return [`${how.method} ${url}`, `${answer.status} ${answer.statusText}`, ...heads, "", readable(await answer.text())].join("\n");
}

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
