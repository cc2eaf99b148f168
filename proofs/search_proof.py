"""Ask a tenant's search random questions, and compare each whole answer with a plain recount of the stored texts.

The recount shares no code with the search: it reads every text, a word is a run of letters and digits, and Snowball's
own stemmers say which words are forms of each other. A ticket that must be found and is not is a miss; one that is
found and may not be is a ghost. A ticket must be found if it has the very words. It may be found if it has other forms
of them, a longer word that the last one begins, or a name in camel case of which a word is only a hump.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import snowballstemmer

from portal.dynamo.store import Store
from proofs import stored
from proofs.stored import TicketItem
from tenants.tenancy.context import TenantContext
from tickets.search import ticket_search, tokenizer
from tickets.search.search_query import ASKING
from tickets.ticket.stored import ActivityItem, DetailItem, SummaryItem

KINDS: Final = ("words", "prefixes", "phrases", "mixed")
_LANGUAGES: Final = ("english", "german", "french")
_RUN: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# A single letter behind an apostrophe, as in "that's another", stands between no two words.
_ENDING: Final = re.compile(r"(?<=\w)['\u2019]\w(?!\w)")
_USABLE: Final = re.compile(r"[a-z]{3,40}\Z")
_PLAIN_PHRASE: Final = re.compile(r"[A-Za-z]{2,20}(?: [A-Za-z]{2,20}){1,3}\Z")
_TRIES: Final = 200  # for a question that can be asked
_PAGES: Final = 10_000  # of one answer; more are an error of ours
_NAMED: Final = 20  # of an answer's tickets that a wrong answer names
Numbers = frozenset[int]


@dataclass(frozen=True)
class SearchedTicket:
    """Hold what is searched of one ticket, text by text: a phrase stands within one of them."""

    texts: Sequence[str]
    tags: Sequence[str] = ()


def read(repository: Store) -> dict[int, SearchedTicket]:
    return {
        number: ticket for number, items in stored.collections(repository) if (ticket := _searched(items)) is not None
    }


def _searched(items: Sequence[TicketItem]) -> SearchedTicket | None:
    summary = next((item for item in items if isinstance(item, SummaryItem)), None)
    if summary is None:
        return None
    texts = [summary.title, summary.requester_name, *summary.tags]
    texts += [item.description for item in items if isinstance(item, DetailItem)]
    texts += [i.body for i in items if isinstance(i, ActivityItem) and i.kind in ("comment", "note")]
    return SearchedTicket(texts, summary.tags)


class WordRecount:
    """Hold for each word of the texts the numbers of the tickets that have it: as a whole, and as a hump as well."""

    def __init__(self, tickets: Mapping[int, SearchedTicket]) -> None:
        self._texts = {number: ticket.texts for number, ticket in tickets.items()}
        self.whole: dict[str, set[int]] = defaultdict(set)
        self._forms: dict[str, set[int]] = defaultdict(set)
        for number, texts in self._texts.items():
            for word, forms in (run for text in texts for run in _runs(text)):
                self.whole[word].add(number)
                for form in forms:
                    self._forms[form].add(number)
        self._stemmers = [snowballstemmer.stemmer(language) for language in _LANGUAGES]
        self._by_stem: list[dict[str, set[str]]] = [defaultdict(set) for _ in self._stemmers]
        for stemmer, stems in zip(self._stemmers, self._by_stem, strict=True):
            for word in self._forms:
                stems[stemmer.stemWord(word)].add(word)

    def exact(self, *words: str) -> Numbers:
        return Numbers().union(*(self.whole.get(word, ()) for word in words))

    def inflected(self, word: str) -> Numbers:
        """Return the tickets that have the word in any of its forms, in any of the languages."""
        stems = zip(self._stemmers, self._by_stem, strict=True)
        forms = {word}.union(*(of.get(stemmer.stemWord(word), ()) for stemmer, of in stems))
        return Numbers().union(*(self._forms.get(form, ()) for form in forms))

    def loose(self, word: str) -> Numbers:
        """Return the tickets that have a form of the word, or a word that begins so."""
        longer = (tickets for form, tickets in self._forms.items() if form.startswith(word))
        return self.inflected(word).union(*longer)

    def in_a_row(self, words: Sequence[str], *, loosely: bool) -> Numbers:
        """Return the tickets that have these words one behind the other in one text; loosely, as humps of names too."""

        def has_row(text: str) -> bool:
            runs = [forms if loosely else {word} for word, forms in _runs(text)]
            starts = range(len(runs) - len(words) + 1)
            return any(all(word in runs[start + n] for n, word in enumerate(words)) for start in starts)

        likely = set.intersection(*(self._forms.get(word, set()) for word in words))
        return Numbers(
            number
            for number in likely
            if any(has_row(text) or (loosely and has_row(_ENDING.sub("", text))) for text in self._texts[number])
        )


def _runs(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each word of a text, in order, with its forms: the word itself, and its humps."""
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        humps = _HUMP.findall(run)
        yield _folded(run), {_folded(run)} | ({_folded(hump) for hump in humps} if len(humps) > 1 else set())


def _folded(word: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char)).casefold()


@dataclass(frozen=True)
class Question:
    kind: str
    query: str
    must: Numbers
    may: Numbers


class Questions:
    """Make questions about these tickets. The same seed makes the same ones."""

    def __init__(self, tickets: Mapping[int, SearchedTicket], *, seed: int) -> None:
        self._tickets, self._recount = tickets, WordRecount(tickets)
        self._rng = random.Random(seed)  # noqa: S311  # it has to be repeatable
        self._words = sorted(filter(_is_usable, self._recount.whole))
        self._prefixes = sorted({word[:n] for word in self._words for n in (3, 4, 5) if _is_usable(word[:n])})

    def some(self, kind: str, many: int) -> Iterator[Question]:
        """Make questions of a kind, no query twice, and fewer where the texts hold no more."""
        asked: set[str] = set()
        make: dict[str, list[Callable[[], tuple[str, Numbers, Numbers] | None]]] = {
            "words": [self._word],
            "prefixes": [self._prefix],
            "phrases": [self._phrase],
            "mixed": [self._both, self._without, self._phrase_and_word, self._tagged],
        }
        for _ in range(many * _TRIES):
            if len(asked) == many:
                return
            made = self._rng.choice(make[kind])()
            if made and made[0] not in asked:
                query, must, may = made
                asked.add(query)
                yield Question(kind, query, must, may | must)

    def _word(self) -> tuple[str, Numbers, Numbers]:
        word = self._rng.choice(self._words)
        return word, self._recount.exact(word), self._recount.loose(word)

    def _prefix(self) -> tuple[str, Numbers, Numbers]:
        prefix = self._rng.choice(self._prefixes)
        # Words such as "when" are not indexed, so "whe" means longer words.
        words = [one for one in self._recount.whole if one.startswith(prefix) and not tokenizer.is_function_word(one)]
        return prefix, self._recount.exact(*words), self._recount.loose(prefix)

    def _phrase(self) -> tuple[str, Numbers, Numbers] | None:
        if not (words := self._words_in_a_row()):
            return None
        must, may = (self._recount.in_a_row(words, loosely=loosely) for loosely in (False, True))
        return f'"{" ".join(words)}"', must, may

    def _both(self) -> tuple[str, Numbers, Numbers]:
        one, other = self._words_of_one_ticket(2)
        must = self._recount.exact(one) & self._recount.exact(other)
        return f"{one} {other}", must, self._recount.inflected(one) & self._recount.loose(other)

    def _without(self) -> tuple[str, Numbers, Numbers]:
        one, other = self._words_of_one_ticket(2)
        # Of what is not wanted, other forms may stay or go, and what has the very word must go.
        must = self._recount.exact(one) - self._recount.loose(other)
        return f"{one} -{other}", must, self._recount.loose(one) - self._recount.exact(other)

    def _phrase_and_word(self) -> tuple[str, Numbers, Numbers] | None:
        if not (phrase := self._phrase()):
            return None
        (word,), (query, must, may) = self._words_of_one_ticket(1), phrase
        return f"{query} {word}", must & self._recount.exact(word), may & self._recount.loose(word)

    def _tagged(self) -> tuple[str, Numbers, Numbers] | None:
        plain = [tag for tag in self._any_ticket().tags if re.fullmatch(r"[a-z0-9-]+", tag)]
        if not plain:
            return None
        tag, (word,) = self._rng.choice(plain), self._words_of_one_ticket(1)
        tagged = Numbers(number for number, one in self._tickets.items() if tag in one.tags)
        return f"tag:{tag} {word}", tagged & self._recount.exact(word), tagged & self._recount.loose(word)

    def _any_ticket(self) -> SearchedTicket:
        return self._tickets[self._rng.choice(sorted(self._tickets))]

    def _words_of_one_ticket(self, many: int) -> Sequence[str]:
        """Return different words that one ticket has, so that the answer is seldom empty."""
        while True:
            found = re.findall(r"[A-Za-z0-9]+", " ".join(self._any_ticket().texts))
            words = sorted({word.lower() for word in found if _is_usable(word.lower())})
            if len(words) >= many:
                return self._rng.sample(words, many)

    def _words_in_a_row(self) -> Sequence[str]:
        """Return two to four words as they follow each other in a text, one of them at least an indexed one."""
        text = self._rng.choice([text for text in self._any_ticket().texts if text] or [""])
        found, many = list(re.finditer(r"[A-Za-z]+", text)), self._rng.randint(2, 4)
        if len(found) < many:
            return ()
        first = self._rng.randrange(len(found) - many + 1)
        start, end = found[first].start(), found[first + many - 1].end()
        # Blanks surround a plain phrase: anything else that stands there can belong to the word.
        around = text[max(0, start - 1) : start] + text[end : end + 1]
        words = text[start:end].lower().split(" ")
        usable = _PLAIN_PHRASE.match(text[start:end]) and not around.strip(" ,.;\n")
        return words if usable and any(map(_is_usable, words)) else ()


def _is_usable(word: str) -> bool:
    return bool(_USABLE.match(word)) and not tokenizer.is_function_word(word) and word not in map(str.lower, ASKING)


@dataclass
class Proved:
    """Count questions, tickets that had to be found and those that were, by kind of question."""

    asked: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    wrong: list[dict[str, Any]] = field(default_factory=list)

    def judge(self, question: Question, numbers: Sequence[int]) -> None:
        answer, kind = set(numbers), question.kind
        self.asked[kind] += 1
        self.wanted[kind] += len(question.must)
        self.found[kind] += len(question.must & answer)
        wrong = {
            "missing": question.must - answer,
            "ghosts": answer - question.may,
            "twice": {number for number, times in Counter(numbers).items() if times > 1},
        }
        if any(wrong.values()):
            named = {name: sorted(some)[:_NAMED] for name, some in wrong.items()}
            self.wrong.append({"kind": kind, "query": question.query, **named})


def everything(tenant: TenantContext, query: str) -> list[int]:
    """Return the numbers of all tickets that a search finds, page by page, in its order."""
    numbers: list[int] = []
    further = ""
    for _ in range(_PAGES):
        found = ticket_search.find(tenant, query, further=further)
        numbers += [int(hit.summary.number) for hit in found.hits]
        further = found.further
        if not further:
            return numbers
    raise AssertionError(f"The answer to {query} has no end.")


def prove(
    tenant: TenantContext,
    tickets: Mapping[int, SearchedTicket],
    *,
    many: Mapping[str, int],
    seed: int,
    advance: Callable[[int], object] = lambda steps: None,
) -> Proved:
    questions, proved = Questions(tickets, seed=seed), Proved()
    for kind in KINDS:
        for question in questions.some(kind, many.get(kind, 0)):
            proved.judge(question, everything(tenant, question.query))
            advance(1)
    return proved
