// A part of a page that keeps itself up to date: while its tab is seen, it is fetched again every so many seconds and
// what differs is changed in place. Focus, selected text and opened details stay, and nothing is announced but what is
// a status of its own.

const part = () => document.querySelector("[data-refresh]");
let asking = false;
let last = Date.now();

setInterval(() => {
  const place = part();
  if (place && !document.hidden && Date.now() - last >= 1000 * Number(place.dataset.refresh)) refresh(place);
}, 1000);

// A print has all that is folded away, and afterwards it is folded away again.
const folded = () => document.querySelectorAll("[data-refresh] details:not([open])");
let opened = [];
addEventListener("beforeprint", () => { opened = [...folded()]; for (const each of opened) each.open = true; });
addEventListener("afterprint", () => { for (const each of opened) each.open = false; });

async function refresh(place) {
  if (asking) return;
  asking = true;
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.status >= 500 || answer.status === 429) throw new Error(answer.statusText);
    show(place, new DOMParser().parseFromString(await answer.text(), "text/html"));
    problem(false);
  } catch {
    problem(true);
  } finally {
    place.removeAttribute("aria-busy");
    asking = false;
    last = Date.now();
  }
}

/** Somebody else's page, another desk's, or one to sign in again is no part of this one: then it is loaded as a whole. */
function show(place, answer) {
  const fresh = answer.getElementById(place.id);
  const scope = (page) => page.getElementById("page")?.dataset.scope;
  if (!fresh || scope(answer) !== scope(document)) {
    location.reload();
    return;
  }
  if (!place.isConnected) return;
  const focused = document.activeElement;
  morph(place, document.adoptNode(fresh));
  // It may have been moved, which takes focus away.
  if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
}

function problem(is) {
  const notice = document.querySelector("[data-refresh-problem]");
  if (notice && notice.hidden === is) notice.hidden = !is;
}

/** Makes the first node like the second, keeping as many nodes as it can; those with ids are known by them. */
function morph(node, like) {
  if (node.nodeName !== like.nodeName || node.id !== like.id) {
    node.replaceWith(like);
    return;
  }
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.data !== like.data) node.data = like.data;
    return;
  }
  for (const { name } of [...node.attributes]) {
    if (!like.hasAttribute(name) && !(node.nodeName === "DETAILS" && name === "open")) node.removeAttribute(name);
  }
  for (const { name, value } of like.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  const named = new Map([...node.children].filter((child) => child.id).map((child) => [child.id, child]));
  let next = node.firstChild;
  for (const wanted of [...like.childNodes]) {
    const known = wanted.id && named.get(wanted.id);
    if (known && known !== next) node.insertBefore(known, next);
    const here = known || next;
    if (here && !known && here.id && here.id !== wanted.id) {
      node.insertBefore(wanted, here);
      continue;
    }
    if (!here) {
      node.append(wanted);
      continue;
    }
    next = here.nextSibling;
    morph(here, wanted);
  }
  while (next) {
    const following = next.nextSibling;
    next.remove();
    next = following;
  }
}
