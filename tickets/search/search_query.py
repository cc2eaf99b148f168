"""Understand what somebody types into the search. Parts that cannot be understood are left out, and a sentence says so.

words              tickets that have all of them, in any form; of the last one the beginning is enough
"some words"       these words, spelt so, one behind the other
word*              words that begin so
-word  -"words"    tickets without them
#123  123          the ticket of this number, then what mentions it; with # among other words, too
status: priority: channel: rating: assignee: tag: from: before: after:
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.errors import Invalid
from portal.plain_text import without_controls
from portal.web import locales
from tickets.custom_fields.definitions import NOTHING_DEFINED, Definitions, operator_word
from tickets.desk import filters
from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.search import tokenizer
from tickets.ticket import fields
from tickets.ticket.custom_values import CustomFilter
from tickets.ticket.fields import ChoiceField, Status

ME: Final = "me"
NOBODY: Final = "nobody"


@dataclass(frozen=True, slots=True)
class Phrase:
    """Hold what was typed between spaces or quotes: one word, or several that stand one behind the other.

    An exact one is found as it is spelt, another one also in its other forms; a prefix is the beginning of its last
    word.
    """

    text: str
    is_exact: bool = False
    is_prefix: bool = False


@dataclass(frozen=True)
class SearchQuery:
    """Hold what tickets have (`phrases`) and do not have (`without`), and what they are besides.

    None and "" ask nothing. `number` stands for the ticket of this number, which is found beside what has it as a word.
    `assignee` is ME, NOBODY, or (a part of) a name or mail address; so is `requester`, but for NOBODY. `choices` are
    words by the names of fields. Days are those of the desk: tickets were opened before `before`, and on the day
    `after` or later.
    """

    phrases: tuple[Phrase, ...] = ()
    without: tuple[Phrase, ...] = ()
    number: int | None = None
    statuses: tuple[Status, ...] | None = None
    assignee: str = ""
    tags: tuple[str, ...] = ()
    requester: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    custom: tuple[CustomFilter, ...] = ()
    before: date | None = None
    after: date | None = None


@dataclass(frozen=True)
class Filters:
    """Hold what a list asks beside the words, as the queue does. `resolver` is a user id, "" for nobody."""

    statuses: tuple[Status, ...] | None = None
    resolver: str | None = None
    only: TicketFilter = EVERYTHING


# --- the parser ---


TEXT_LIMIT: Final = 2_000  # characters that are looked at
PHRASES_LIMIT: Final = 24  # words and phrases that are searched for, and as many that are left out
PREFIX_LEAST: Final = 3  # letters of the beginning of a word, or of a compound
_SHOWN: Final = 30  # characters of what was typed, in a sentence

_QUOTES: Final = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\uff02", '"'))
_MINUSES: Final = "-\u2212\u2013"
_NUMBER: Final = re.compile(r"#?([1-9][0-9]{0,11})\Z", re.ASCII)
# What says little in a question. Unlike function words these are indexed: alone and in quotation marks they are found.
ASKING: Final = frozenset(["why", "how", "where", "whose", "whom", "does", "did", "should", "could"])
_LOGIC: Final = {
    "OR": gettext_noop("OR is not understood: tickets that have all of the words are found."),
    "AND": gettext_noop("AND is not needed: tickets that have all of the words are found."),
    "NOT": gettext_noop("NOT is not understood: a minus right in front of a word leaves out tickets that have it."),
}
_TOKEN: Final = re.compile(
    rf'(?P<minus>[{_MINUSES}](?=[\w"]))?(?:(?P<name>[^\W\d_][\w-]*):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]*))'
)
_DAY: Final = re.compile(r"([0-9]{4})(?:-([0-9]{1,2}))?(?:-([0-9]{1,2}))?\Z", re.ASCII)


class OnlyFilters(Invalid):
    """Nothing was asked for but what a list of tickets shows: `query` says what."""

    def __init__(self, message: str, query: SearchQuery) -> None:
        super().__init__(message, field="q")
        self.query = query


def parse(
    text: str, *, is_typing: bool = False, defined: Definitions = NOTHING_DEFINED
) -> tuple[SearchQuery, tuple[str, ...]]:
    """Return the query, and a sentence for each thing in it that was ignored.

    The names of the custom fields, kinds and groups that are `defined` are understood too. `is_typing` takes the last
    word for a beginning even where it is a word by itself. Raises Invalid, with the field "q", where nothing is left
    that can be searched for.
    """
    parser = _Parser(text, is_typing, defined)
    query, explanations = parser.query(), list(dict.fromkeys(parser.explanations))
    if (
        query.tags
        or query.requester
        or any(one.is_one_value for one in query.custom)
        or query.number
        or any(map(_is_indexed, query.phrases))
    ):
        return query, tuple(explanations)
    if parser.function_words or query.phrases:
        problem = _("These words are in nearly every ticket. Add one that says more.")
    elif query.without:
        problem = _("Say what to search for, too: only words to leave out were given.")
    elif parser.asked:
        problem = _("Add a word to search for. The queue shows all tickets of a status, a person, a priority or a day.")
        raise OnlyFilters(" ".join(dict.fromkeys([*explanations, problem])), query)
    else:
        problem = _("Type a word, a phrase in quotation marks or a ticket's number.")
    raise Invalid(" ".join(dict.fromkeys([*explanations, problem])), field="q")


def _is_indexed(phrase: Phrase) -> bool:
    found = tokenizer.words(phrase.text)
    return phrase.is_prefix or any(not tokenizer.is_function_word(word.folded[0]) for word in found)


class _Parser:
    """Read a text token by token, and hold what was understood so far."""

    def __init__(self, text: str, is_typing: bool, defined: Definitions) -> None:
        self._text, self._is_typing = text, is_typing
        self._known = {**_own_operators(defined), **_OPERATORS}
        self._phrases: list[Phrase] = []
        self._without: list[Phrase] = []
        self._asking: list[Phrase] = []
        self.function_words: list[str] = []
        self.asked: dict[str, Any] = {}
        self._operators: dict[str, str] = {}  # as they were typed
        self._unknown: list[str] = []  # operators that there are not
        self._number: int | None = None
        self.explanations: list[str] = []

    def query(self) -> SearchQuery:
        plain = plain_text.block(self._text[:TEXT_LIMIT]).translate(_QUOTES).replace(plain_text.REPLACEMENT, " ")
        if len(self._text) > TEXT_LIMIT:
            self.explanations.append(
                _("Only the first %(limit)s characters were searched for.")
                % {"limit": locales.current().number(TEXT_LIMIT)}
            )
        if plain.count('"') % 2:
            plain = " ".join(plain.rsplit('"', 1))
            self.explanations.append(_("A quotation mark was not closed, and was ignored."))
        is_open = tokenizer.may_go_on(plain) and tokenizer.may_go_on(self._text)
        tokens = [match for match in _TOKEN.finditer(plain) if match[0]]
        for match in tokens:
            self._read(match, is_last=is_open and match is tokens[-1])
        if number := _NUMBER.match(plain):
            self._number = int(number[1])
        if not self._phrases:
            self._phrases, self._asking = self._asking, []
        phrases, without = list(dict.fromkeys(self._phrases)), list(dict.fromkeys(self._without))
        self._explain(phrases, without)
        return SearchQuery(
            phrases=tuple(phrases[:PHRASES_LIMIT]),
            without=tuple(without[:PHRASES_LIMIT]),
            number=self._number,
            **self.asked,
        )

    def _read(self, match: re.Match[str], *, is_last: bool) -> None:
        quoted, name = match["quoted"], (match["name"] or "").lower()
        value = match["plain"] if quoted is None else quoted
        if name in self._known:
            self._operate(name, value.strip(), match)
            return
        if value in _LOGIC and match[0] == value:
            self.explanations.append(_(_LOGIC[value]))
            return
        written = f"{match['name']}:{value}" if name else value
        if name and value[:1].isalpha() and name.isascii() and name.isalpha():
            self._unknown.append(f"{match['name']}:")
        if written.startswith("#") and (number := _NUMBER.match(written)) and not match["minus"]:
            self._number, is_last = self._number or int(number[1]), False
        if written.endswith("*") and len(written.strip("*")) < PREFIX_LEAST and tokenizer.words(written):
            self.explanations.append(
                _("A star needs at least %(least)s letters in front of it: “%(written)s”.")
                % {"least": PREFIX_LEAST, "written": _shown(written)}
            )
        phrases = _unquoted(written, is_last=is_last) if quoted is None else [Phrase(written, is_exact=True)]
        phrases = [phrase for phrase in phrases if tokenizer.words(phrase.text)]
        if not phrases and not written.isascii():  # nobody takes punctuation for something that is searched for
            self.explanations.append(
                _("“%(written)s” has no letter or digit, and was ignored.") % {"written": _shown(written)}
            )
        for phrase in phrases:
            if match["minus"]:
                self._without.append(phrase)
            elif _is_function_word(phrase) and not (self._is_typing and phrase.is_prefix):
                self.function_words.append(phrase.text)
            elif phrase.text.lower() in ASKING and not phrase.is_exact and not self._is_typing:
                self._asking.append(phrase)
            else:
                self._phrases.append(phrase)

    def _operate(self, name: str, value: str, match: re.Match[str]) -> None:
        what, read = self._known[name]
        if match["minus"]:
            self.explanations.append(
                _("“%(written)s” was ignored: only words can be left out.") % {"written": _shown(match[0])}
            )
            return
        try:
            found = read(value) if value else None
        except Invalid:
            found = None
        if found is None:
            self.explanations.append(
                _("“%(written)s” was ignored. Write behind %(name)s: %(what)s.")
                % {"written": _shown(match[0]), "name": name, "what": _(what)}
            )
            return
        if name == "tag":
            self.asked["tags"] = (*self.asked.get("tags", ()), found)
        elif isinstance(found, CustomFilter):
            self.asked["custom"] = (*self.asked.get("custom", ()), found)
        elif name == "status":
            self.asked["statuses"] = tuple(dict.fromkeys((*self.asked.get("statuses", ()), *found)))
        else:
            former = self._operators.get(name, match[0])
            if former.casefold() != match[0].casefold():
                self.explanations.append(
                    _("“%(written)s” was ignored: of several %(name)s: only the last one counts.")
                    % {"written": _shown(former), "name": name}
                )
            self._operators[name] = match[0]
            if name in fields.FILTERS or name in _DEFINED:
                self.asked["choices"] = {**self.asked.get("choices", {}), name: found}
            else:
                self.asked["requester" if name == "from" else name] = found

    def _explain(self, phrases: Sequence[Phrase], without: Sequence[Phrase]) -> None:
        say = self.explanations.append
        if self.function_words and (phrases or self.asked):
            say(_("Left out, because nearly every ticket has it: %(words)s.") % {"words": _listed(self.function_words)})
        if self._asking:
            words = _listed(phrase.text for phrase in self._asking)
            say(
                _("Left out, as words of a question: %(words)s. In quotation marks they are searched for.")
                % {"words": words}
            )
        if self._unknown:
            known = ", ".join(f"{name}:" for name in self._known)
            unknown = _listed(self._unknown)
            say(
                _("There is no filter %(unknown)s, so this was taken for a word. Filters are %(known)s.")
                % {"unknown": unknown, "known": known}
            )
        if self._number and len(self._phrases) > 1:
            say(
                _("#%(number)s is the ticket of this number, if it fits the rest, or the number in a text.")
                % {"number": self._number}
            )
        elif self._number and phrases:
            say(_("First ticket #%(number)s, then tickets whose texts have this number.") % {"number": self._number})
        if len(phrases) > PHRASES_LIMIT:
            say(_("Only the first %(limit)s words were searched for.") % {"limit": PHRASES_LIMIT})
        if len(without) > PHRASES_LIMIT:
            say(_("Only the first %(limit)s words with a minus were left out.") % {"limit": PHRASES_LIMIT})


def _unquoted(text: str, *, is_last: bool) -> list[Phrase]:
    star = text.endswith("*")
    # Text of scripts without spaces is one phrase, digits and Latin letters in it included.
    parts = [text] if tokenizer.is_unspaced(text) else tokenizer.compounds(text)
    found = [Phrase(part) for part in parts if tokenizer.words(part)]
    if (is_last or star) and found and _may_be_prefix(found[-1].text):
        found[-1] = Phrase(found[-1].text, is_exact=star, is_prefix=True)
    return found


def _may_be_prefix(text: str) -> bool:
    """Tell whether a text is long enough to be a beginning. A compound, such as a version, counts as a whole."""
    parts = [word.folded[0] for word in tokenizer.words(text)]
    is_compound = len(parts) > 1 and not tokenizer.is_unspaced(text)
    return (sum(map(len, parts)) if is_compound else len(parts[-1])) >= PREFIX_LEAST


def _is_function_word(phrase: Phrase) -> bool:
    found = tokenizer.words(phrase.text)
    return len(found) == 1 and not phrase.is_exact and tokenizer.is_function_word(found[0].folded[0])


def _listed(words: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys(f"“{_shown(word)}”" for word in words))[:5])


# --- operators ---


def _statuses(value: str) -> tuple[Status, ...]:
    return tuple(status for word in value.lower().split(",") if word for status in filters.statuses(word))


def _word(choice: ChoiceField, value: str) -> str:
    return str(choice.clean(value.lower()))


def _assignee(value: str) -> str | None:
    return NOBODY if value.lower() in (NOBODY, "none", "unassigned") else _name(value)


def _name(value: str) -> str | None:
    folded = plain_text.line(value).casefold()
    return folded if tokenizer.words(folded) else None


def _day(value: str) -> date | None:
    """Return the day in 2026-11-20, the first one in 2026-11 and 2026."""
    match = _DAY.match(value)
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None
    except ValueError:
        return None


_DEFINED: Final = {field.name for field in fields.DEFINED}
_OPERATORS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "status": (gettext_noop("open, pending, resolved, closed, unresolved or any"), _statuses),
    **{name: (choice.about, partial(_word, choice)) for name, choice in fields.FILTERS.items()},
    "assignee": (gettext_noop("me, nobody, a name or a mail address"), _assignee),
    "from": (gettext_noop("me, a name or a mail address"), _name),
    "tag": (gettext_noop("a tag"), lambda value: plain_text.word(value) or None),
    "before": (gettext_noop("a day as 2026-11-20"), _day),
    "after": (gettext_noop("a day as 2026-11-20"), _day),
}


def _own_operators(defined: Definitions) -> dict[str, tuple[str, Callable[[str], Any]]]:
    """Return the operators of what a desk has defined: its kinds and groups, and each custom field by its name."""
    own: dict[str, tuple[str, Callable[[str], Any]]] = {}
    for one in defined.fields:
        own.setdefault(one.word, (_("a value of “%(name)s”") % {"name": one.name}, partial(CustomFilter.parse, one.id)))
    for of in fields.DEFINED:
        if ids := {operator_word(one.name): one.id for one in defined.of_field(of)}:
            own[of.name] = (_("one of %(names)s") % {"names": ", ".join(ids)}, partial(_id_named, ids))
    return own


def _id_named(ids: Mapping[str, str], value: str) -> str | None:
    return ids.get(operator_word(value))


def _shown(text: str) -> str:
    return without_controls(text, limit=_SHOWN)
