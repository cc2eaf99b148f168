"""Ask a tenant's search random questions and hold the answers against two oracles; judge its order by NDCG.

An answer is read to its end, page by page, as somebody reads it who goes on and on. A ticket that must be found and is
not is a miss; one that is found and may not be is a ghost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofs.search import full_text_oracle, ranking_quality
from proofs.search.full_text_oracle import FullTextOracle
from proofs.search.questions import KINDS, Question, Questions
from proofs.search.ranking_quality import JudgedQuery
from proofs.search.stored_tickets import StoredTicket
from tenants.tenancy.context import TenantContext
from tickets.search import ticket_search

_PAGES: Final = 10_000  # of one answer; more are an error of ours
_NAMED: Final = 20  # of an answer's tickets that a wrong answer names


@dataclass(frozen=True)
class WrongAnswer:
    """Hold a query whose answer lacks tickets, or holds what it should not, or names one twice."""

    kind: str
    query: str
    missing: tuple[int, ...]
    ghosts: tuple[int, ...]
    twice: tuple[int, ...]


@dataclass
class Proved:
    """Count questions, tickets that had to be found and those that were, by kind of question."""

    asked: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    wrong: list[WrongAnswer] = field(default_factory=list)

    def recall(self, kind: str) -> float:
        """Return which share of what had to be found was found; 1 where nothing had to be."""
        return self.found.get(kind, 0) / self.wanted[kind] if self.wanted.get(kind) else 1.0


@dataclass(frozen=True)
class Ranked:
    """Hold the mean NDCG@10 over the judged queries: ours, and those of FTS5's bm25 as it is and at its best."""

    ours: float
    fts5: float
    fts5_best: float
    by_query: dict[str, tuple[float, float]]  # ours and FTS5's


def everything(tenant: TenantContext, query: str) -> list[int]:
    """Return the numbers of all tickets that a search finds, in its order. Raises what `finding.find` raises."""
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
    tickets: Mapping[int, StoredTicket],
    *,
    many: Mapping[str, int],
    seed: int,
    advance: Callable[[int], object] = lambda steps: None,
) -> Proved:
    """Ask as many questions of each kind as `many` says."""
    questions, proved = Questions(tickets, seed=seed), Proved()
    for kind in KINDS:
        for question in questions.some(kind, many.get(kind, 0)):
            judge(question, everything(tenant, question.query), proved)
            advance(1)
    questions.oracle.close()
    return proved


def judge(question: Question, numbers: Sequence[int], proved: Proved) -> None:
    """Add one answer to what was proved."""
    answer = set(numbers)
    kind = question.kind
    proved.asked[kind] = proved.asked.get(kind, 0) + 1
    proved.wanted[kind] = proved.wanted.get(kind, 0) + len(question.must)
    proved.found[kind] = proved.found.get(kind, 0) + len(question.must & answer)
    missing, ghosts = question.must - answer, answer - question.may
    twice = {number for number in answer if numbers.count(number) > 1} if len(answer) < len(numbers) else set()
    if missing or ghosts or twice:
        named = (tuple(sorted(some)[:_NAMED]) for some in (missing, ghosts, twice))
        proved.wrong.append(WrongAnswer(kind, question.query, *named))


def rank(
    tenant: TenantContext,
    tickets: Mapping[int, StoredTicket],
    judged: Iterable[JudgedQuery],
    *,
    ticket_of: Mapping[int, int],
) -> Ranked:
    """Judge our order and FTS5's by the same judgments. `ticket_of` gives the ticket of each row of the archive."""
    rows = {ticket: row for row, ticket in ticket_of.items()}
    queries = list(judged)

    def ours(query: str) -> list[int]:
        found = ticket_search.find(tenant, query)
        # As the page of results shows them: what has every word, then what has nearly all.
        return [rows.get(int(hit.summary.number), 0) for hit in (*found.hits, *found.nearly)]

    def theirs(oracle: FullTextOracle, weights: Sequence[float]) -> Callable[[str], list[int]]:
        def answer(query: str) -> list[int]:
            best = oracle.best(full_text_oracle.split(query), count=ranking_quality.SHOWN, weights=weights)
            return [rows.get(number, 0) for number in best]

        return answer

    plain = FullTextOracle(tickets.values())
    stemming = FullTextOracle(tickets.values(), tokenizer=full_text_oracle.STEMMING)
    as_it_is, at_its_best = theirs(plain, ()), theirs(stemming, full_text_oracle.GOOD_WEIGHTS)
    by_query = {
        one.query: (
            ranking_quality.ndcg(ours(one.query), one.grades),
            ranking_quality.ndcg(as_it_is(one.query), one.grades),
        )
        for one in queries
    }
    ranked = Ranked(
        ours=ranking_quality.mean(mine for mine, _ in by_query.values()),
        fts5=ranking_quality.mean(other for _, other in by_query.values()),
        fts5_best=ranking_quality.mean_ndcg(queries, at_its_best),
        by_query=by_query,
    )
    plain.close()
    stemming.close()
    return ranked
