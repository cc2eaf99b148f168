"""What the demonstration invents: histories that the rules allow, and a believable mix of them."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from tickets.desk.history import History
from tickets.seeding import cast, content
from tickets.ticket import fields
from tickets.ticket.fields import MOVES, Status

DAY = "2026-03-15"


def histories(number: int, *, seed: int = 1, users: int = 2, desk: str = "Acme") -> list[History]:
    made = cast.desk(desk, seed=seed, tickets=number, users=users)
    return [
        content.invent(made, n, planned=number, seed=seed, day=date.fromisoformat(DAY)) for n in range(1, number + 1)
    ]


@example(seed=6829665, desk="Acme")  # where a customer would be drawn with an agent's name
@given(seed=st.integers(0, 10**9), desk=st.sampled_from(["Acme", "Globex", "Hooli", "Some Works 7"]))
def test_every_history_is_one_that_the_rules_allow(seed: int, desk: str) -> None:
    opened_at = datetime(1970, 1, 1, tzinfo=UTC)
    made = cast.desk(desk, seed=seed, tickets=0, users=2)
    people = {(p.id, p.name) for p in (*made.agents, *made.contacts)}
    for history in histories(12, seed=seed, desk=desk):
        status, resolver, at = "open", "", history.created_at
        for entry in history.entries:
            assert at <= entry.at < datetime(2026, 3, 15, tzinfo=UTC)
            at = entry.at
            assert entry.author_name
            assert (entry.author, entry.author_name) in people
            for field, before, after in entry.changes:
                if field == "status":
                    assert before == status
                    assert Status(after) in MOVES[Status(before)]
                    status = after
                elif field == "resolver":
                    assert before == resolver
                    resolver = after
        known = max(entry.at for entry in history.entries if entry.kind != "note")
        assert (history.values["status"].value, history.resolver_name, history.updated_at) == (status, resolver, known)
        assert {p.name: p.id for p in made.agents}.get(resolver, "") == history.values["resolver"]
        assert history.created_at > opened_at, "numbers are given in the order of opening"
        opened_at = history.created_at
        assert fields.tag_list(", ".join(history.values["tags"])) == list(history.values["tags"])
        texts = [
            history.values["title"],
            history.values["description"],
            *(e.body for e in history.entries if e.kind != "event"),
        ]
        assert all(texts)
        assert not re.search(r"\{\w+\}", " ".join(texts).replace('{"event"', ""))
        assert len(history.values["title"]) <= fields.TITLE_LIMIT


def test_who_is_greeted_stands_in_the_ticket() -> None:
    greeted = 0
    for history in histories(200):
        heard = f"{history.requester_name} {history.values['description']}"
        for entry in history.entries:
            for name in re.findall(r"^(?:Hi|Hello) (\w+),", entry.body or ""):
                greeted += 1
                assert name in heard, (history.values["title"], entry.body)
            heard += f" {entry.author_name} {entry.body}"
    assert greeted > 20


def test_the_mix_is_that_of_a_desk_at_work() -> None:
    made = histories(240, users=6)
    statuses, priorities = Counter(h.values["status"] for h in made), Counter(h.values["priority"] for h in made)

    assert 50 < statuses[Status.OPEN] < 90
    assert statuses[Status.CLOSED] > statuses[Status.RESOLVED] > 10 < statuses[Status.PENDING]
    assert priorities["normal"] > priorities["urgent"] > 3
    channels = Counter(h.values["channel"] for h in made)
    assert channels["mail"] > channels["hand"] > channels["api"] > 3 < channels["form"]
    assert {h.values["channel"] for h in made if h.values["description"].startswith("Written down")} == {"hand"}
    assert len({h.values["title"] for h in made}) > 120
    assert any(h.values["status"] is Status.OPEN and not h.values["resolver"] for h in made)
    assert any(e.kind == "note" for h in made for e in h.entries)
    assert {"```", "\n- ", "\n1. ", "**"} <= {
        m for m in ("```", "\n- ", "\n1. ", "**") for h in made if m in h.values["description"]
    }


def test_another_seed_gives_other_content() -> None:
    assert [h.values["title"] for h in histories(9, seed=1)] != [h.values["title"] for h in histories(9, seed=2)]
