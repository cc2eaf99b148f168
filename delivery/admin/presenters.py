"""Make of counts what the operators' pages of queues show."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Any, Final

from django.utils.html import format_html_join

from delivery.queues import blast_radius, queue_sets
from delivery.queues.allocation import said
from delivery.queues.blast_radius import PUBLISHED, PUBLISHED_QUEUES
from delivery.queues.depths import Depths
from delivery.queues.queue_survey import Survey
from delivery.queues.simulation import WORKERS, QueueDesign, simulate

SHOWN: Final = 200  # tenants on one page
_MANY: Final = 10  # neighbours that are named


def queue_rows(survey: Survey, seen: Depths | None) -> list[dict[str, Any]]:
    """Return a row for each queue: its number, its tenants and what it held when a worker looked."""
    loads = blast_radius.load(survey.sets, survey.queues)
    held = seen.queues if seen else ()
    return [
        {"number": number, "tenants": tenants, "depth": held[number] if number < len(held) else None}
        for number, tenants in enumerate(loads)
    ]


def tenant_rows(survey: Survey, beginning: str) -> tuple[list[dict[str, Any]], bool]:
    """Return a row for each tenant whose slug begins so, up to `SHOWN`, and whether there are more."""
    slugs = [slug for slug in survey.slugs if slug.startswith(beginning)]
    named = survey.named()
    rows = []
    for slug in slugs[:SHOWN]:
        row: dict[str, Any] = {"slug": slug, "id": survey.slugs[slug], "queues": said(named.get(slug, ()))}
        if slug in named:
            near = blast_radius.neighbours(named, slug)
            most = max(map(len, near.values()), default=0)
            row |= {"near": len(near), "most": most, "worst": next(iter(near), "")}
        rows.append(row)
    return rows, len(slugs) > SHOWN


def neighbour_rows(survey: Survey, slug: str) -> tuple[list[dict[str, str]], int]:
    """Return who shares most with a tenant, and how many others share something."""
    named = survey.named()
    near = blast_radius.neighbours(named, slug) if slug in named else {}
    rows = [{"slug": other, "shared": said(shared)} for other, shared in [*near.items()][:_MANY]]
    return rows, max(0, len(near) - _MANY)


# --- blast radius ---


def radius_row(
    name: str, assigned: Mapping[Any, queue_sets.QueueSet], queues: int, size: int, possible: int
) -> dict[str, Any]:
    """Return what an assignment comes to: the sets there are, who shares how much, the worst pair."""
    pairs = blast_radius.pairs_by_shared(assigned)
    return {
        "name": name,
        "queues": queues,
        "size": size,
        "tenants": f"{len(assigned):,}",
        "possible": f"{possible:,}",
        "pairs": _pairs(pairs),
        "mean": blast_radius.mean_affected(pairs, len(assigned)),
        "worst": blast_radius.worst_pair(assigned),
    }


def chance_row(queues: int, size: int, tenants: int) -> dict[str, Any]:
    """Return what sets drawn by chance come to, on average."""
    pairs = blast_radius.by_chance(queues, size, tenants)
    mean = blast_radius.mean_affected(pairs, tenants)
    named = {"name": "Drawn by chance, on average", "queues": queues, "size": size, "tenants": f"{tenants:,}"}
    return named | {"possible": f"{comb(queues, size):,}", "pairs": _pairs(pairs), "mean": mean, "worst": None}


def ours(queues: int, tenants: int) -> dict[int, queue_sets.QueueSet]:
    """Return the sets of so many tenants, by their places."""
    return {place: queue_sets.nth(place, queues) for place in range(tenants)}


def published_row() -> dict[str, Any]:
    """Return what the published table comes to."""
    return radius_row("The published table", PUBLISHED, PUBLISHED_QUEUES, 3, comb(PUBLISHED_QUEUES, 3))


def _pairs(pairs: list[float]) -> Any:
    shown = [(f"{number:,.1f}".removesuffix(".0"), shared) for shared, number in enumerate(pairs) if number >= 0.05]
    return format_html_join(", ", "{} share {}", shown)


def simulated_rows(queues: int) -> list[dict[str, Any]]:
    """Return what the simulation says of four designs, for the twenty tenants of the published table."""
    noisy = len(PUBLISHED) - 1
    published = tuple(tuple(sorted(queue - 1 for queue in PUBLISHED[tenant])) for tenant in sorted(PUBLISHED))
    alone = tuple((worker,) for worker in range(WORKERS))
    own_sets = tuple(tuple(sorted(one)) for one in ours(queues, len(PUBLISHED)).values())
    spread = tuple((queue % WORKERS,) for queue in range(queues))
    designs = [
        ("One queue for all", QueueDesign(((0,),) * len(PUBLISHED), (tuple(range(WORKERS)),))),
        ("The published table, any of the three", QueueDesign(published, alone)),
        ("The published table, the least backlog of a minute ago", QueueDesign(published, alone, "late")),
        (f"Ours on {queues} queues, six in flight", QueueDesign(own_sets, spread, "own", 6)),
    ]
    return [{"name": name, "result": simulate(design, noisy)} for name, design in designs]
