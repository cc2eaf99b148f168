// Texts of scripts in the language of the page. English is the source; a page in another language carries the others in
// #words, which portal/web/jinja.py makes of all texts that scripts mark: gettext("Text of {name}", { name }).

let place = null;
let words = {};

function translated(text) {
  const here = document.getElementById("words");
  if (here !== place) {
    place = here;
    words = JSON.parse(here?.content.textContent || "{}");
  }
  return words[text];
}

const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]);

globalThis.gettext = (text, values = {}) => filled(translated(text) ?? text, values);

/** {num} is the count, as the language writes numbers. */
globalThis.ngettext = (one, many, count, values = {}) => {
  const language = document.documentElement.lang;
  const form = new Intl.PluralRules(language).select(count) === "one" ? 0 : 1;
  return filled((translated(one) ?? [one, many])[form], { num: count.toLocaleString(language), ...values });
};
