"""Small issue archives, importing them, and whether what came of it is whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.commands import Ended, everything, run
from tests.support.world import World
from tickets.data import stored as import_keys
from tickets.data.stored import ImportItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import ActivityItem, DetailItem, SummaryItem


def comment(position: int, **values: Any) -> dict[str, Any]:
    at = f"2024-03-02T{position // 3600 % 24:02d}:{position // 60 % 60:02d}:{position % 60:02d}Z"
    return {"author": "bob", "body": f"Comment {position}", "createdAt": at, "updatedAt": at} | values


def issue(number: int, *, comments: int = 0, **values: Any) -> dict[str, Any]:
    return {
        "number": number,
        "id": f"I_{number}",
        "title": f"Issue {number} is here",
        "state": "OPEN",
        "author": "carol",
        "assignees": [],
        "labels": [],
        "body": "It *broke*.",
        "createdAt": "2024-03-01T09:00:00Z",
        "updatedAt": "2024-03-03T09:00:00Z",
        "closedAt": None,
        "comments": [comment(i) for i in range(1, comments + 1)],
    } | values


def pull(number: int, **values: Any) -> dict[str, Any]:
    merged = "2024-03-02T12:00:00Z"
    review = {"author": "dora", "state": "COMMENTED", "body": "Almost.", "createdAt": merged, "comments": []}
    closed = {"state": "MERGED", "closedAt": merged, "mergedAt": merged, "mergedBy": "erin", "reviews": [review]}
    return issue(number, title=f"Change {number}") | closed | values


def write(path: Path, *issues: Any, pulls: tuple[Any, ...] = (), **top: Any) -> Path:
    """An archive of these rows, as the archive tool writes it."""
    whole = {"magic": "E!vIA5L86J2I", "repo": "example/project", "labels": [{"name": "bug"}]} | top
    path.write_text(json.dumps(whole | {"issues": list(issues), "pulls": list(pulls)}))
    return path


def imported(path: Path | str, *options: str) -> Ended:
    return run("import_archive", path, "--tenant", "acme", *options)


def sound(world: World, source: str = "example/project") -> dict[str, tuple[int, int]]:
    """Checks that each ticket is whole or invisible; the rows of the archive as {row: (ticket number, comments)}.

    Items of an invisible ticket may only wait for a row that has claimed its number, or for TTL.
    """
    tenant_id = world.tenants["acme"].tenant_id
    tickets: dict[int, dict[str, dict[str, Any]]] = {}
    markers = []
    for raw in everything():
        number = ticket_keys.ticket_number(tenant_id, raw["pk"]["S"])
        if number is not None:
            tickets.setdefault(number, {})[raw["sk"]["S"]] = raw
        elif "digest" in raw:
            markers.append(ImportItem.from_raw_data(raw))
    claimed = {int(m.number) for m in markers if not m.done}
    done = {int(m.number): m for m in markers if m.done}
    assert len(claimed) + len(done) == len(markers)
    visible = set()
    for number, items in tickets.items():
        if ticket_keys.SUMMARY not in items:
            assert number in claimed or all("expires_at" in item for item in items.values())
            continue
        visible.add(number)
        summary = SummaryItem.from_raw_data(items.pop(ticket_keys.SUMMARY))
        DetailItem.from_raw_data(items.pop(ticket_keys.DETAIL))
        entries = [ActivityItem.from_raw_data(item) for item in items.values()]
        assert sum(e.kind != "event" for e in entries) == summary.comment_count
        assert sum(bool(e.changes) for e in entries) + 1 == summary.version
        assert max(e.at for e in entries) <= summary.updated_at
        assert number not in done or done[number].comments == summary.comment_count
    assert set(done) <= visible
    pk = import_keys.import_source(tenant_id, source)
    return {m.sk: (number, int(m.comments)) for number, m in done.items() if m.pk == pk}
