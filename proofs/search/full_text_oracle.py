"""Answer the same questions by SQLite's FTS5, in memory and for a proof alone: nothing of the portal stores any SQL.

FTS5 knows nothing of our tokenizer. Its `unicode61` splits at everything that is neither letter nor digit, so a word of
plain letters is a word for both; that is what the random questions are made of.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from proofs.search.stored_tickets import StoredTicket

PLAIN: Final = "unicode61 remove_diacritics 2"
STEMMING: Final = f"porter {PLAIN}"
GOOD_WEIGHTS: Final = (10, 2, 1, 1)  # for bm25: the best of those that were tried with the judged queries
_COLUMNS: Final = ("title", "description", "comments", "labels")
_WORDS: Final = re.compile(r"[^\W_]+")
# Stands between the comments of a ticket, so that no phrase goes from one to the next.
_BETWEEN: Final = "\nzqzbetweenzqz\n"


class FullTextOracle:
    """Hold the stored texts in FTS5; numbers of tickets are its rowids. `tokenizer` is in FTS5's words."""

    def __init__(self, tickets: Iterable[StoredTicket], *, tokenizer: str = PLAIN) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(
            f"CREATE VIRTUAL TABLE texts USING fts5({', '.join(_COLUMNS)}, tokenize='{tokenizer}')"
        )
        self._connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(texts, 'row')")
        rows = [(t.number, t.title, t.description, _BETWEEN.join((*t.comments, *t.notes)), _labels(t)) for t in tickets]
        self._connection.executemany(
            "INSERT INTO texts(rowid, title, description, comments, labels) VALUES (?, ?, ?, ?, ?)", rows
        )

    def close(self) -> None:
        self._connection.close()

    def vocabulary(self) -> list[tuple[str, int]]:
        """Return every word with the number of tickets that have it, in the order of words."""
        rows = self._connection.execute("SELECT term, doc FROM vocabulary ORDER BY term")
        return [(term, int(many)) for term, many in rows if term != _BETWEEN.strip()]

    def having(self, expression: str) -> set[int]:
        """Return the numbers of the tickets that an expression of FTS5 matches; see `word` and its like."""
        rows = self._connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,))
        return {int(number) for (number,) in rows}

    def best(self, words: Sequence[str], *, count: int, weights: Sequence[float] = ()) -> list[int]:
        """Return the best tickets by bm25: those with all words, then, where these are too few, those with some.

        `weights` are of title, description, comments and labels; bm25's own, 1 for each, where there are none.
        """
        order = f"bm25(texts{''.join(f', {float(weight)}' for weight in weights)})"
        found: list[int] = []
        for joiner in (" AND ", " OR "):
            rows = self._connection.execute(
                f"SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY {order}, rowid LIMIT ?",  # noqa: S608  # floats
                (joiner.join(word(one) for one in words), count),
            )
            found += [int(number) for (number,) in rows if number not in found]
        return found[:count]


def split(query: str) -> list[str]:
    """Return the words of a query as FTS5 would tell them apart."""
    return _WORDS.findall(query)


def word(text: str) -> str:
    """Return FTS5's expression for a word."""
    return f'"{text}"'


def phrase(words: Iterable[str]) -> str:
    """Return FTS5's expression for words that follow each other."""
    return f'"{" ".join(words)}"'


def _labels(ticket: StoredTicket) -> str:
    return _BETWEEN.join((*ticket.tags, ticket.requester_name))
