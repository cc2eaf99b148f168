"""Look for everything that was acknowledged while a desk moved, and say what is wrong."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.placement import Placement
from portal.dynamo.repository import TenantRepository
from proofs.counting import journal
from proofs.moving.move_torture import Leg, MoveTorture
from tenants.tenancy import context, tenant_directory
from tickets.moving import copy_check
from tickets.moving.placed_store import PlacedStore, Raw
from tickets.ticket import keys as ticket_keys
from tickets.verification import recount, verify

_AT_ONCE: Final = 16
Line = dict[str, Any]


def figures(run: MoveTorture) -> dict[str, Any]:
    """Look for each acknowledged write at the last place, compare both copies, and recount the aggregates."""
    lines = run.told("writer")
    writes = [line for line in lines if line["kind"] != "refused"]
    place, last = Placement.parse(run.plan.to[-1]), run.legs[-1]
    titles, texts, missing = _stored(run, writes, place)
    opened = Counter(line["text"] for line in writes if line["kind"] == "ticket")
    said = Counter(line["text"] for line in writes if line["kind"] == "comment")
    checked = copy_check.check(run.tenant_id, left=Placement.parse(last.left), present=place)
    reads = run.told("reader")
    verdict = verify.verify(_repository(run))
    return {
        "plan": asdict(run.plan),
        "tickets": sum(titles.values()),
        "writes": len(writes),
        "refused": [line["why"] for line in lines if line["kind"] == "refused"],
        "killed_at": [point for leg in run.legs for point in leg.killed_at],
        "reads": sum(_last_reads(path) for path in run.folder.glob("reader-*.jsonl")),
        "failed_reads": [line["failed"] for line in reads if line["failed"]],
        "lost": sorted((opened - titles) + (said - texts)),
        "doubled": sorted(text for text, times in (titles + texts).items() if times > 1),
        "missing_changes": missing,
        "different": [leg.trouble for leg in run.legs if leg.trouble] + checked.wrong,
        "changed_since": checked.changed,
        "digest": checked.digest,
        "digest_then": last.digest,
        "legs": [_of_leg(leg, writes) for leg in run.legs],
        "longest_write": max(line["seconds"] for line in writes),
        "longest_hold": max(line["held"] for line in writes),
        "moved": all(leg.moved for leg in run.legs),
        "dashboards": verdict.state,
    }


def is_broken(found: dict[str, Any]) -> list[str]:
    """Return the names of the figures that say that something is wrong."""
    empty = ("refused", "failed_reads", "lost", "doubled", "missing_changes", "different")
    broken = [name for name in empty if found[name]]
    broken += [] if found["moved"] else ["moved"]
    broken += [] if found["digest"] == found["digest_then"] else ["digest"]
    return broken + ([] if found["dashboards"] == verify.OK else ["dashboards"])


def _of_leg(leg: Leg, writes: list[Line]) -> dict[str, Any]:
    """Say what a leg took, and what the writes that ended during it did: their usual time and the longest one's."""
    lines = [line for line in writes if leg.began <= line["at"] <= leg.ended]
    usual = statistics.median(line["seconds"] for line in lines) if lines else 0.0
    held = [line["held"] for line in lines if line["held"]]
    return asdict(leg) | {
        "seconds": round(leg.ended - leg.began, 1),
        "writes": len(lines),
        "writes_held": len(held),
        "median_write": usual,
        "longest_write": max((line["seconds"] for line in lines), default=0.0),
        "longest_hold": max(held, default=0.0),
        "ratio": round(max(held, default=0.0) / max(0.0001, usual), 1),
    }


def _repository(run: MoveTorture) -> TenantRepository:
    return context.for_system(tenant_directory.get(run.tenant_id)).repository


def _stored(run: MoveTorture, writes: list[Line], place: Placement) -> tuple[Counter[str], Counter[str], list[str]]:
    """Count the titles that tickets were opened with and the texts of comments, at a place, and name the titles that
    somebody gave to a ticket whose history does not say so exactly once.
    """
    titles: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    missing: list[str] = []
    given: dict[int, list[str]] = {}
    for line in writes:
        if line["kind"] == "change":
            given.setdefault(line["number"], []).append(line["text"])
    opened = {line["number"]: line["text"] for line in writes if line["kind"] == "ticket"}
    for number, collection in _collections(run, place):
        for raw in collection:
            if raw["sk"]["S"] == ticket_keys.SUMMARY:
                title = raw["title"]["S"]
                titles[opened.get(number, title) if title in given.get(number, ()) else title] += 1
            elif raw.get("body", {}).get("S"):
                texts[raw["body"]["S"]] += 1
        missing += _missing(given.get(number, ()), collection)
    return titles, texts, missing


def _missing(given: Iterable[str], collection: list[Raw]) -> list[str]:
    told = json.dumps([raw.get("changes", {}) for raw in collection])
    return [title for title in given if told.count(f'"after": {{"S": "{title}"}}') != 1]


def _collections(run: MoveTorture, place: Placement) -> Iterator[tuple[int, list[Raw]]]:
    store, last = PlacedStore(run.tenant_id, place), recount.last_number(_repository(run))
    for start in range(1, last + 1, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, last + 1))
        wanted = [ticket_keys.ticket(run.tenant_id, number) for number in numbers]
        yield from zip(numbers, fan_out([partial(store.collection, one) for one in wanted]), strict=True)


def _last_reads(path: Any) -> int:
    lines = list(journal.lines(path))
    return int(lines[-1]["reads"]) if lines else 0
