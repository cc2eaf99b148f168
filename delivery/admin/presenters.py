"""Make of counts what the operators' pages of queues show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from math import comb
from typing import Any, Final

from django.utils.html import format_html_join

from delivery.queues import blast_radius, queue_sets
from delivery.queues.allocation import Survey, said
from delivery.queues.blast_radius import PUBLISHED, PUBLISHED_QUEUES
from delivery.queues.depths import Depths

SHOWN: Final = 200  # tenants on one page
_MANY: Final = 10  # neighbours that are named
_LINEAR: Final = "Linear: one more for each tenant"


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
    pairs, worst = blast_radius.pairs_by_shared(assigned), blast_radius.worst_pair(assigned)
    return _row(name, pairs, queues, size, len(assigned), possible) | {"worst": len(worst.shared) if worst else None}


def chance_row(queues: int, size: int, tenants: int) -> dict[str, Any]:
    """Return what sets drawn by chance come to, on average."""
    pairs = blast_radius.by_chance(queues, size, tenants)
    return _row("Drawn by chance, on average", pairs, queues, size, tenants, comb(queues, size))


def our_row(queues: int, tenants: int) -> dict[str, Any]:
    """Return what the sets come to that the product gives to so many tenants."""
    pairs = our_pairs(queues, tenants)
    worst = max((shared for shared, number in enumerate(pairs) if number), default=0)
    possible = len(queue_sets.sets(queues))
    return _row("Ours", pairs, queues, queue_sets.SIZE, tenants, possible) | {"worst": worst or None}


def our_pairs(queues: int, tenants: int) -> list[float]:
    """Count the pairs that share 0, 1, 2, ... queues where so many tenants have been given sets, one after another."""
    every = queue_sets.sets(queues)
    rounds, rest = divmod(tenants, len(every))
    return blast_radius.pairs_of_sets({one: rounds + (place < rest) for place, one in enumerate(every)})


def published_row() -> dict[str, Any]:
    return radius_row("The published table", PUBLISHED, PUBLISHED_QUEUES, 3, comb(PUBLISHED_QUEUES, 3))


def _row(name: str, pairs: list[float], queues: int, size: int, tenants: int, possible: int) -> dict[str, Any]:
    shown = [(f"{number:,.1f}".removesuffix(".0"), shared) for shared, number in enumerate(pairs) if number >= 0.05]
    return {
        "name": name,
        "queues": queues,
        "size": size,
        "tenants": f"{tenants:,}",
        "possible": f"{possible:,}",
        "pairs": format_html_join(", ", "{} share {}", shown),
        "mean": blast_radius.mean_affected(pairs, tenants),
        "worst": None,
    }


def odds_row(processors: int, size: int) -> dict[str, Any]:
    """Return how likely two, three and four tenants have the same processors."""
    possible, odds = blast_radius.same_set_odds(processors, size)
    printed = [percent(chance) for chance in odds]
    return {"processors": processors, "size": size, "possible": f"{possible:,}", "odds": printed}


def percent(share: float) -> str:
    """Return a share as a percentage of three significant digits, without an exponent."""
    if not share:
        return "0%"
    places = max(0, 2 - math.floor(math.log10(share * 100)))
    text = f"{share * 100:.{places}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def designs(queues: int, size: int, tenants: int, dollars: Decimal, *, with_ours: bool) -> list[dict[str, Any]]:
    """Return the designs of the slides beside each other: how many others one tenant's noise reaches, what it costs.

    `slowed` share at least one processor with the noisy tenant; `lost` share all that they have.
    """
    drawn = blast_radius.by_chance(queues, size, tenants)
    others = float(tenants - 1)
    simple = float(blast_radius.on_its_processor(tenants, queues) - 1)
    rows: list[tuple[str, int, float, float, str, str]] = [
        ("One for all (P = 1)", 1, others, others, "Vertical: a larger one", "None"),
        ("One for each tenant, nothing shared (P = T)", tenants, 0.0, 0.0, _LINEAR, "Full"),
        ("One for each tenant behind one entry (P = T)", tenants, 0.0, 0.0, _LINEAR, "Full behind the entry"),
        ("Simple sharding (P < T)", queues, simple, simple, "Sublinear", "Between shards"),
        (
            "Shuffle sharding, drawn",
            queues,
            blast_radius.mean_affected(drawn, tenants),
            2 * drawn[size] / tenants,
            "Sublinear",
            "By sets, which chance may give twice",
        ),
    ]
    if with_ours:
        pairs = our_pairs(queues, tenants)
        same = 2 * pairs[queue_sets.SIZE] / tenants
        is_enough = tenants <= len(queue_sets.sets(queues))
        guarantee = "Two sets share two of four at most" if is_enough else "By sets, which are given again in turn"
        rows.append(("Ours", queues, blast_radius.mean_affected(pairs, tenants), same, "Sublinear", guarantee))
    return [
        {
            "name": name,
            "processors": f"{processors:,}",
            "slowed": f"{slowed:,.1f}".removesuffix(".0"),
            "lost": f"{lost:,.1f}".removesuffix(".0"),
            "share": percent((lost + 1) / tenants),
            "dollars": f"{processors * dollars:,.2f}",
            "scaling": scaling,
            "isolation": isolation,
        }
        for name, processors, slowed, lost, scaling, isolation in rows
    ]


def slide_figures() -> dict[str, Any]:
    """Return the slides' further arithmetic, computed: 20 tenants on 8 processors, sets of 3 of 50, Route 53."""
    tenants, processors = len(PUBLISHED), PUBLISHED_QUEUES
    hit = blast_radius.on_its_processor(tenants, processors)
    return {
        "table": [odds_row(number, size) for number, (size, _) in blast_radius.PUBLISHED_ODDS.items()],
        "hit": hit,
        "share": percent(hit / tenants),
        "at_20000": blast_radius.others_with_the_set(20_000, 50, 3),
        "at_100000": blast_radius.others_with_the_set(100_000, 50, 3),
        "route_53": f"{comb(*blast_radius.ROUTE_53):,}",
    }
