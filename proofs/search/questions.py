"""Make random questions of stored texts, each with the tickets that must be found and those that may be.

What must be found is what FTS5 finds, word for word. What may be found besides are other forms of the words, longer
words where the last one is the beginning of one, and names of which a word is only a hump: a plain recount tells them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofs.search import full_text_oracle
from proofs.search.full_text_oracle import FullTextOracle
from proofs.search.plain_recount import PlainRecount
from proofs.search.stored_tickets import StoredTicket
from tickets.search import tokenizer
from tickets.search.query_parser import ASKING

KINDS: Final = ("words", "prefixes", "phrases", "mixed")
_WORD: Final = re.compile(r"[a-z]{3,40}\Z")
_IN_TEXT: Final = re.compile(r"[A-Za-z0-9]+")
_PLAIN_PHRASE: Final = re.compile(r"[A-Za-z]{2,20}(?: [A-Za-z]{2,20}){1,3}\Z")
_TRIES: Final = 200  # for a question that can be asked


@dataclass(frozen=True)
class Question:
    """Hold a query, the tickets that its answer must name, and those that it may name: `must` is part of `may`."""

    kind: str
    query: str
    must: frozenset[int]
    may: frozenset[int]


class Questions:
    """Make questions about these tickets. The same seed makes the same ones."""

    def __init__(self, tickets: Mapping[int, StoredTicket], *, seed: int) -> None:
        self.tickets = tickets
        self.oracle = FullTextOracle(tickets.values())
        self.recount = PlainRecount(tickets.values())
        self._rng = random.Random(seed)  # noqa: S311  # it has to be repeatable
        self._all_words = [word for word, _ in self.oracle.vocabulary()]
        self._words = [word for word in self._all_words if _is_usable(word)]
        prefixes = {word[:length] for word in self._words for length in (3, 4, 5) if len(word) >= length}
        self._prefixes = sorted(filter(_is_usable, prefixes))

    def some(self, kind: str, many: int) -> Iterator[Question]:
        """Make questions of a kind, no query twice, and fewer where the texts hold no more."""
        asked: set[str] = set()
        make: dict[str, Callable[[], Question | None]] = {
            "words": self._word, "prefixes": self._prefix, "phrases": self._phrase, "mixed": self._mixed,
        }  # fmt: skip
        for _ in range(many * _TRIES):
            if len(asked) == many:
                return
            question = make[kind]()
            if question and question.query not in asked:
                asked.add(question.query)
                yield question

    def _word(self) -> Question:
        word = self._rng.choice(self._words)
        return Question("words", word, self._exact(word), self._loose(word))

    def _prefix(self) -> Question:
        prefix = self._rng.choice(self._prefixes)
        # Words such as "when" are not indexed, so who types "whe" means longer words.
        words = [word for word in self._all_words if word.startswith(prefix) and not tokenizer.is_function_word(word)]
        must = frozenset().union(*(self._exact(word) for word in words))
        return Question("prefixes", prefix, must, self._loose(prefix) | must)

    def _phrase(self) -> Question | None:
        words = self._words_in_a_row()
        if not words:
            return None
        must = frozenset(self.oracle.having(full_text_oracle.phrase(words)))
        return Question("phrases", f'"{" ".join(words)}"', must, must | self.recount.in_a_row(words))

    def _mixed(self) -> Question | None:
        return self._rng.choice((self._both, self._without, self._phrase_and_word, self._tagged))()

    def _both(self) -> Question:
        one, other = self._words_of_one_ticket(2)
        must = self._exact(one) & self._exact(other)
        may = frozenset(self.recount.inflected(one)) & self._loose(other)
        return Question("mixed", f"{one} {other}", must, may | must)

    def _without(self) -> Question:
        one, other = self._words_of_one_ticket(2)
        # Of what is not wanted, other forms may stay or go, and what has the very word must go.
        must = self._exact(one) - self._loose(other)
        may = self._loose(one) - self._exact(other)
        return Question("mixed", f"{one} -{other}", must, may | must)

    def _phrase_and_word(self) -> Question | None:
        words = self._words_in_a_row()
        if not words:
            return None
        (word,) = self._words_of_one_ticket(1)
        phrase = frozenset(self.oracle.having(full_text_oracle.phrase(words)))
        loose = phrase | self.recount.in_a_row(words)
        return Question("mixed", f'"{" ".join(words)}" {word}', phrase & self._exact(word), loose & self._loose(word))

    def _tagged(self) -> Question | None:
        ticket = self._any_ticket()
        plain = [tag for tag in ticket.tags if re.fullmatch(r"[a-z0-9-]+", tag)]
        if not plain:
            return None
        tag, (word,) = self._rng.choice(plain), self._words_of_one_ticket(1)
        tagged = frozenset(number for number, one in self.tickets.items() if tag in one.tags)
        return Question("mixed", f"tag:{tag} {word}", tagged & self._exact(word), tagged & self._loose(word))

    # --- sets of tickets ---

    def _exact(self, word: str) -> frozenset[int]:
        return frozenset(self.oracle.having(full_text_oracle.word(word)))

    def _loose(self, word: str) -> frozenset[int]:
        return frozenset(self.recount.inflected(word) | self.recount.beginning(word) | self._exact(word))

    # --- what is asked about ---

    def _any_ticket(self) -> StoredTicket:
        return self.tickets[self._rng.choice(sorted(self.tickets))]

    def _words_of_one_ticket(self, many: int) -> Sequence[str]:
        """Return different words that one ticket has, so that the answer is seldom empty."""
        while True:
            texts = " ".join(self._any_ticket().texts())
            words = sorted({word.lower() for word in _IN_TEXT.findall(texts) if _is_usable(word.lower())})
            if len(words) >= many:
                return self._rng.sample(words, many)

    def _words_in_a_row(self) -> Sequence[str]:
        """Return two to four words as they follow each other in a text, one of them at least an indexed one."""
        text = self._rng.choice([text for text in self._any_ticket().texts() if text] or [""])
        found = list(re.finditer(r"[A-Za-z]+", text))
        many = self._rng.randint(2, 4)
        if len(found) < many:
            return ()
        start = self._rng.randrange(len(found) - many + 1)
        row = text[found[start].start() : found[start + many - 1].end()]
        words = row.lower().split(" ")
        usable = _PLAIN_PHRASE.match(row) and _stands_alone(text, found[start].start(), found[start + many - 1].end())
        return words if usable and any(_is_usable(word) for word in words) else ()


def _is_usable(word: str) -> bool:
    return bool(_WORD.match(word)) and not tokenizer.is_function_word(word) and word.lower() not in ASKING


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Tell whether blanks surround a stretch: what else may stand there can belong to the word."""
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return not around.strip(" ,.;\n")
