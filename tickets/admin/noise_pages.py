"""Show operators who is noisy now, who suffers, and what the system did about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from delivery.queues import depths, holds
from delivery.queues.depths import Depths
from delivery.queues.stored import HoldItem
from portal import clock
from portal.dynamo.client import fan_out
from portal.load import noise_report, tenant_limiter
from portal.load.measurement import MINUTE, NoiseTally
from portal.load.noise_report import LATE_MINUTES, LoadReport, TenantNoise
from portal.schema import keys
from portal.streams import watermark
from portal.web.access import on_get, on_post
from tenants.operators.operator_site import OperatorSite
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.sharding import reshard_requests
from tickets.sharding.stored import ReshardItem
from tickets.ticket.stored import TICKETS

SPANS: Final = (5, 15, 30)  # minutes
_USUAL: Final = 15
_REFRESH_SECONDS: Final = 15
_HOLDS: Final = 20  # that are named


@OperatorSite.page("noise/", name="noise", title="Noise")
@on_get(get="queue depths, watermark", query="hold of deliveries, noise, resharding", trips=2, reads=30)
@on_post(get="queue depths", query="hold of deliveries, noise, resharding", trips=1, reads=10)
def noise(request: HttpRequest) -> HttpResponse:
    """Show the last 5, 15 or 30 minutes, `?minutes=`: a Query for each, two more, two GetItems and a BatchGetItem in
    two round trips, however many tenants there are."""
    asked = request.GET.get("minutes", "")
    minutes = next((span for span in SPANS if str(span) == asked), _USUAL)
    reads: list[Any] = [
        partial(noise_report.read, minutes=minutes, now=clock.now()),
        depths.read,
        partial(holds.waiting, limit=_HOLDS),
        reshard_requests.all_last,
        partial(watermark.read, TICKETS),
    ]
    board, seen, held, reshardings, mark = fan_out(reads)
    named = [one.tenant_id for one in (*board.noisiest(NAMED), *board.suffering(NAMED))]
    tenants = {tenant.tenant_id: tenant for tenant in tenant_directory.get_many(sorted({*named}))} if named else {}
    context = {
        **OperatorSite.context_of(request),
        "title": "Noise",
        "board": board,
        "minutes": minutes,
        "spans": SPANS,
        "late_minutes": LATE_MINUTES,
        "refresh": _REFRESH_SECONDS,
        "told_by": told_by(board),
        "noisy": noisy_rows(board, tenants),
        "suffering": suffering_rows(board, tenants),
        "deeds": deeds(board, held, reshardings),
        "rest": rest(board),
        "queues": queue_summary(seen),
        "oldest": oldest(board),
        "lag": lag(mark.as_of if mark else None),
        "is_counted": mark is not None,
    }
    return TemplateResponse(request, "tickets/admin/noise.html", context)


NAMED: Final = 10  # tenants in a table
_FULLEST: Final = 8  # queues
_NEARLY: Final = 80  # percent of a limit, from which on it is marked


def noisy_rows(board: LoadReport, tenants: Mapping[str, TenantItem]) -> list[dict[str, Any]]:
    """Return a row for each of the noisiest tenants: its share of all capacity, and of what it may ask for."""
    return [_noisy_row(noise, board, tenants.get(noise.tenant_id)) for noise in board.noisiest(NAMED)]


def _noisy_row(noise: TenantNoise, board: LoadReport, tenant: TenantItem | None) -> dict[str, Any]:
    tally, limit = noise.tally, _per_minute(tenant)
    of_limit = None if not limit else round(100 * noise.peak_units / limit)
    return {
        **_named(noise.tenant_id, tenant),
        "share": _percent(tally.capacity, board.total.capacity),
        "reads": _number(tally.reads / board.minutes),
        "writes": _number(tally.writes / board.minutes),
        "requests": _number(tally.requests / board.minutes),
        "of_limit": of_limit,
        "is_near": of_limit is not None and of_limit >= _NEARLY,
        "refused": _number(tally.refused),
    }


def suffering_rows(board: LoadReport, tenants: Mapping[str, TenantItem]) -> list[dict[str, Any]]:
    """Return a row for each tenant that was refused something, waited or lost a delivery."""
    return [
        {
            **_named(noise.tenant_id, tenants.get(noise.tenant_id)),
            "throttles": _number(noise.tally.throttles),
            "refused": _number(noise.tally.refused),
            "failed": _number(noise.tally.failed + noise.tally.dead),
            "late": _number(noise.tally.put_off + noise.tally.held),
            "wait": _seconds(noise.tally.wait),
        }
        for noise in board.suffering(NAMED)
    ]


def deeds(board: LoadReport, holds: Sequence[HoldItem], reshardings: Sequence[ReshardItem]) -> list[str]:
    """Return sentences that say what the system did in these minutes, without those about nothing."""
    total, begins = board.total, board.ended_at - timedelta(minutes=board.minutes)
    said = [
        _deed(total.refused, "request was refused with 429", "requests were refused with 429"),
        _deed(total.throttles, "request to the database was throttled", "requests to the database were throttled"),
        _deed(total.put_off, "delivery was put off", "deliveries were put off"),
        _deed(total.held, "delivery was held back for an operator", "deliveries were held back for operators"),
        _deed(total.dead, "delivery or change became a dead letter", "deliveries or changes became dead letters"),
    ]
    for item in reshardings:
        if clock.parse(item.begun_at) >= begins:
            who = item.by or "the stream worker"
            said.append(f"{item.slug} is resharded from {item.from_shards:.0f} to {item.to_shards:.0f}, by {who}.")
    said += [f"Deliveries of {hold.title or hold.name} are held back by an operator." for hold in holds]
    return [sentence for sentence in said if sentence]


def queue_summary(seen: Depths | None) -> dict[str, Any]:
    """Return the sums of all queues, and the fullest of them; {} where no worker has told yet."""
    if seen is None:
        return {}
    numbered = sorted(enumerate(seen.queues), key=lambda pair: -pair[1].total)
    return {
        "at": seen.at,
        "is_late": seen.is_late,
        "number": len(seen.queues),
        "waiting": sum(depth.waiting for depth in seen.queues),
        "in_flight": sum(depth.in_flight for depth in seen.queues),
        "delayed": sum(depth.delayed for depth in seen.queues),
        "fullest": [{"number": number, "depth": depth} for number, depth in numbered[:_FULLEST] if depth.total],
    }


def told_by(board: LoadReport) -> str:
    """Return by which processes it was told: "2 web, 1 stream worker"."""
    return ", ".join(f"{len(board.kinds[kind])} {kind}" for kind in sorted(board.kinds))


def rest(board: LoadReport) -> dict[str, str]:
    """Return what all tenants together had that no process named, and what was done for none."""
    named = NoiseTally()
    for noise in board.tenants.values():
        named.add(noise.tally)
    nobody = board.total.capacity - named.capacity - board.others.capacity
    return {
        "others": f"{_percent(board.others.capacity, board.total.capacity)}%",
        "nobody": f"{_percent(nobody, board.total.capacity)}%",
    }


def oldest(board: LoadReport) -> str:
    """Return the longest time that a message was in its queue, "" where none was."""
    return _seconds(board.total.wait)


def lag(as_of: datetime | None) -> str:
    """Return how far what is counted is behind, "" where nobody says."""
    return _seconds((clock.now() - as_of).total_seconds()) if as_of else ""


def _named(tenant_id: str, tenant: TenantItem | None) -> dict[str, Any]:
    if tenant_id == keys.PLATFORM:
        return {"id": tenant_id, "slug": "Platform", "known": False}
    return {"id": tenant_id, "slug": tenant.slug if tenant else tenant_id, "known": tenant is not None}


def _per_minute(tenant: TenantItem | None) -> float:
    if tenant is None:
        return tenant_limiter.UNLIMITED
    return tenant_limiter.of(tenant.plan, tenant.request_rate) * MINUTE


def _percent(part: float, whole: float) -> int:
    return round(100 * part / whole) if whole > 0 else 0


def _deed(number: float, one: str, many: str) -> str:
    return f"{number:,.0f} {one if round(number) == 1 else many}." if round(number) else ""


def _number(value: float) -> str:
    return f"{value:,.1f}" if 0 < value < 10 and value != int(value) else f"{value:,.0f}"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return ""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
