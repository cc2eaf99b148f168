"""The monthly letter as its page and its mail say it: each figure with the address of its proof."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop, ngettext

from portal import clock
from portal.web import locales
from tenants.audit_trail.drills import Drill, DrillResult
from tenants.tenancy.context import TenantContext
from tickets.costs import presenters as costs
from tickets.isolation_runs import run_requests
from tickets.reports import monthly
from tickets.reports import report as reports
from tickets.reports.monthly import MonthlyLetter
from tickets.reports.presenters import month_name
from tickets.ticket.fields import Rating

_RESULTS: Final = {
    DrillResult.RIGHT: gettext_lazy("all right"),
    DrillResult.WRONG: gettext_lazy("something was wrong"),
    DrillResult.UNKNOWN: gettext_lazy("not all of it could be checked"),
}


_ATTACKS: Final = {
    run_requests.HELD: gettext_noop("nothing got through"),
    run_requests.CROSSED: gettext_noop("something got through"),
}
_UNFINISHED: Final = gettext_noop("without a result")


@dataclass(frozen=True)
class Figure:
    """A line of the letter: `before` is the figure of the month before, "" where there is none to compare. Each has
    the page that explains it."""

    label: str
    now: str
    url: str
    before: str = ""
    before_url: str = ""


def address(month: str, part: str = "") -> str:
    return f"{reverse('tickets:monthly-letter')}?{urlencode({'month': month})}{part and f'#{part}'}"


def numbers(found: MonthlyLetter) -> list[Figure]:
    """Return what happened to tickets, with the report of the month, and what the desk cost, with its statement."""
    of, before, number = found.numbers, found.before, locales.current().number
    months = (found.month, reports.shifted(found.month, -1))
    urls = [f"{reverse('tickets:reports')}?{urlencode({'month': month})}" for month in months]
    lines = [
        (_("Opened"), of.created, before.created),
        (_("Resolved"), of.done.count, before.done.count),
        (_("Still unresolved"), of.unresolved, before.unresolved),
    ]
    if found.has_targets or of.missed:
        lines.append((_("Missed a target"), of.missed, before.missed))
    if any((*of.ratings.values(), *before.ratings.values())):
        said = _("Rated: %(rating)s")
        lines += [(said % {"rating": one.label}, of.ratings[one], before.ratings[one]) for one in Rating]
    figures = [Figure(label, number(now), urls[0], number(then), urls[1]) for label, now, then in lines]
    cost, cost_before = found.costs
    if cost.by_feature:
        urls = [f"{reverse('tickets:costs')}?{urlencode({'month': month})}" for month in months]
        told = (costs.total_of(cost_before), urls[1]) if cost_before.by_feature else ("", "")
        figures.append(Figure(_("Costs"), costs.total_of(cost), urls[0], *told))
    return figures


def promises(found: MonthlyLetter) -> list[Figure]:
    """Return what can be proved of the month, each with the page that shows it."""
    number = locales.current().number
    entries = ngettext("%(num)s entry", "%(num)s entries", found.head.rows) % {"num": number(found.head.rows)}
    audit = f"{reverse('tenants:audit')}?{urlencode({'head': found.head.text})}"
    lines = [Figure(_("Audit trail at the end of the month"), entries, audit)]
    lines += _attacks(found)
    if found.drill is not None:
        lines.append(Figure(_("Last restore drill"), _drill(*found.drill), address(found.month, "restore")))
    if found.unfelt is not None:
        url = address(found.month, "others")
        lines.append(Figure(_("Overload by other desks, not felt by yours"), _unfelt(found.unfelt), url))
    return lines


def _attacks(found: MonthlyLetter) -> list[Figure]:
    """Return the last attack by owners in the month, and the last one by operators: what was tried, and the result."""
    number, url, lines = locales.current().number, reverse("tickets:isolation"), []
    if found.attacks:
        last, count = found.attacks[0], len(found.attacks)
        label = ngettext("Attack on this desk, %(result)s", "Last of %(num)s attacks on this desk, %(result)s", count)
        tried = ngettext("%(num)s attempt", "%(num)s attempts", int(last.tried)) % {"num": number(int(last.tried))}
        result = _(_ATTACKS.get(last.state, _UNFINISHED))
        lines.append(Figure(label % {"num": number(count), "result": result}, tried, url))
    if (proof := found.proof) is not None:
        label = _("Last attack by the operators, %(result)s; broken layers noticed")
        result = _(_ATTACKS[run_requests.HELD if proof.holds else run_requests.CROSSED])
        noticed = _("%(count)s of %(all)s") % {"count": number(int(proof.noticed)), "all": number(int(proof.broken))}
        lines.append(Figure(label % {"result": result}, noticed, url))
    return lines


def _drill(at: datetime, drill: Drill) -> str:
    return f"{locales.current().day_seen_in(at, 0)}, {_RESULTS[drill.result]}"


def _unfelt(minutes: int) -> str:
    if not minutes:
        return _("none")
    return _("up to %(num)s minutes") % {"num": locales.current().number(minutes)}


def page(tenant: TenantContext, found: MonthlyLetter) -> dict[str, Any]:
    month, latest = found.month, monthly.last_month(tenant)
    opened = clock.day_of(tenant.created_at, tenant.zone)
    return {
        "month": month,
        "latest": latest,
        "title": month_name(month),
        "before_title": month_name(reports.shifted(month, -1)),
        "previous": address(reports.shifted(month, -1)),
        "next": address(reports.shifted(month, 1)) if month < latest else "",
        "figures": numbers(found),
        "opened_later": date.fromisoformat(opened) if opened >= reports.shifted(month, 1) else None,
        "has_costs": bool(found.costs[0].by_feature),
        "promises": promises(found),
        "head": found.head,
        "head_url": f"{reverse('tenants:audit')}?{urlencode({'head': found.head.text})}",
        "drill": found.drill,
        "in_silo": tenant.placement.kind == "silo",
        "drill_text": _drill(*found.drill) if found.drill else "",
        "unfelt": None if found.unfelt is None else _unfelt(found.unfelt),
        "own_minutes": found.disturbances.own_minutes,
        "own": {date.fromisoformat(day): minutes for day, minutes in found.disturbances.own.items()},
        "least_desks": monthly.LEAST_DESKS,
    }
