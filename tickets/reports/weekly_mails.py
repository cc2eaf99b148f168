"""Write the mail about the numbers of a week."""

from __future__ import annotations

from datetime import timedelta
from email.utils import formataddr, parseaddr
from typing import Any, Final

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _

from portal import plain_text
from portal.mailing.outgoing import OutgoingMail
from portal.web import desk_prefix, locales
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import page_for_mail
from tickets.dashboards.charts import duration
from tickets.dashboards.presenters import ANY, UNRESOLVED_LIST
from tickets.desk.ticket_presenters import queue_url
from tickets.notices.mute_links import MuteLink
from tickets.reports.weekly import WeekReport
from tickets.ticket.fields import UNRESOLVED

_NAME_LIMIT: Final = 60  # characters


def mail(tenant: TenantContext, person: Member, found: WeekReport) -> OutgoingMail:
    """Return the mail to a member, in their language. Its text and its HTML say the same."""
    desk = plain_text.named(tenant.name, limit=_NAME_LIMIT)
    stop = MuteLink(tenant.tenant_id, person.id, is_report=True)
    with desk_prefix.addresses_of(tenant.slug), locales.shown_in(person.locale_at(tenant)):
        locale = locales.current()
        stop_url = page_for_mail(reverse("tickets:mute", args=[stop.token]))
        days = {"first": locale.short_day(found.week.first), "last": locale.day(found.week.first + timedelta(days=6))}
        page = {
            "desk": desk,
            "name": plain_text.named(person.name, limit=_NAME_LIMIT),
            "days": _("%(first)s to %(last)s") % days,
            "rows": _rows(found),
            "report_url": page_for_mail(reverse("tickets:reports")),
            "stop_url": stop_url,
            "language": locale.language,
        }
        text, html = (render_to_string(f"reports/mail/weekly.{ending}", page) for ending in ("txt", "html"))
        written = OutgoingMail(
            to=person.email,
            subject=_("[%(desk)s] The week: %(created)s opened, %(resolved)s resolved")
            % {
                "desk": desk,
                "created": locale.number(found.week.created),
                "resolved": locale.number(found.week.resolved),
            },
            text=text,
            html=html,
            kind="weekly_report",
            about=f"member/{person.id}",
            tenant_id=tenant.tenant_id,
            queues=tenant.queues,
        )
    written.from_email = formataddr((desk, parseaddr(settings.DEFAULT_FROM_EMAIL)[1]))
    written.extra_headers |= {"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"}
    if stop_url.startswith("http"):
        written.extra_headers |= {
            "List-Unsubscribe": f"<{stop_url}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        }
    return written


def _rows(found: WeekReport) -> list[dict[str, Any]]:
    """Return what the mail says: each number beside that of the week before, with the list of its tickets."""
    now, before = found.week, found.before
    unresolved = found.now.of_status(*UNRESOLVED)
    counts = (
        (_("Opened"), now.created, before.created, {"created": now.days}),
        (_("Resolved"), now.resolved, before.resolved, {"resolved": now.days}),
        (_("Comments"), now.commented, before.commented, None),
    )
    number = locales.current().number
    rows = [_row(label, number(one), number(other), params if one else None) for label, one, other, params in counts]
    rows += [
        _row(_("First answer, median"), duration(now.answers.median), duration(before.answers.median)),
        _row(_("Time to resolve, median"), duration(now.solutions.median), duration(before.solutions.median)),
        _row(_("Unresolved now"), number(unresolved), "", {"status": UNRESOLVED_LIST} if unresolved else None),
        _row(
            _("Nobody has it now"),
            number(found.now.unassigned),
            "",
            {"status": UNRESOLVED_LIST, "resolver": "none"} if found.now.unassigned else None,
        ),
    ]
    return rows


def _row(label: str, now: str, before: str, params: dict[str, str] | None = None) -> dict[str, str]:
    url = page_for_mail(queue_url(**({"status": ANY} | params))) if params else ""
    return {"label": label, "now": now, "before": before, "url": url}
