"""Rules and their rehearsals in words, as pages show them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import formataddr, parseaddr
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from delivery.mail.outbox_backend import MailContent
from portal import clock, plain_text
from portal.web import desk_prefix, locales
from portal.web.locales import stored_text
from tenants.audit_trail import browsing
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import page_for_mail
from tickets.bulk_jobs.presenters import edit_words, list_words
from tickets.custom_fields import definitions
from tickets.rules import rehearsal_requests
from tickets.rules.answering import RuleMail
from tickets.rules.definition import ASSIGNEE_WORD, By, On, Rule
from tickets.rules.forms import BY, EVENTS, MOMENTS, whats
from tickets.rules.rehearsal import TAG
from tickets.rules.rehearsal_requests import Extent, RuleFinding
from tickets.rules.stored import RehearsalItem, RunItem
from tickets.ticket.fields import ASSIGNEE

_LINES: Final = 5  # events of one ticket


@dataclass(frozen=True)
class Names:
    """The names that rules mean by ids: of members, shared answers, endpoints and rules."""

    people: Mapping[str, str]
    answers: Mapping[str, str]
    webhooks: Mapping[str, str]
    rules: Mapping[str, str]


def words(tenant: TenantContext, rule: Rule, names: Names) -> dict[str, Any]:
    """Return when, if and then of a rule in words."""
    when, then = rule.when, rule.then
    what = {**whats(definitions.of(tenant)), **MOMENTS}.get(when.what, when.what)
    only = list_words(tenant, {"status": "any", **rule.only.params}, names.people) if rule.only.params else ""
    edit = edit_words(tenant, then.edit, names.people)
    return {
        "when": ", ".join(str(part) for part in (EVENTS[when.on], what, BY[when.by]) if part),
        "if": only or _("Any ticket"),
        "then": [*edit, *_actions(then.answer, then.webhook, then.mail_to, names)],
    }


def _actions(answer: str, webhook: str, mail_to: str, names: Names) -> list[str]:
    who = _("the assignee") if mail_to == ASSIGNEE_WORD else names.people.get(mail_to) or _("a former member")
    told = []
    if answer:
        told.append(_("Post the ready answer “%(title)s”") % {"title": names.answers.get(answer) or _("deleted")})
    if webhook:
        told.append(_("Call the webhook %(name)s") % {"name": names.webhooks.get(webhook) or _("(deleted)")})
    if mail_to:
        told.append(_("Send a mail to %(who)s") % {"who": who})
    return told


# What JSON raises that is no rule of ours: an archive that was imported may have any.
_NO_RULE: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _when_said(stored: str) -> str:
    """Return the event of a rule, which the audit trail has as JSON, in words; what was cut there as it is."""
    try:
        event, by, what = itemgetter("event", "by", "what")(json.loads(stored))
        return ", ".join(str(part) for part in (EVENTS[On(event)], MOMENTS.get(what, what), BY[By(by)]) if part)
    except _NO_RULE:
        return stored


def _part_said(stored: str) -> str:
    """Return the other parts of a rule in the same way: what they name, and nothing that is empty."""
    try:
        parts = [*_filled(json.loads(stored))]
    except _NO_RULE:
        return stored
    return "; ".join(f"{browsing.name_said(name)}: {browsing.value_said('', name, value)}" for name, value in parts)


def _filled(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in told.items():
        if isinstance(value, dict):
            yield from _filled(value)
        elif value:
            yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


browsing.declare_values(_when_said, "when", about="rule")
browsing.declare_values(_part_said, "if", "then", about="rule")


def rehearsal_line(item: RehearsalItem) -> dict[str, Any]:
    """Return how far a rehearsal is, and its counts."""
    counts = {name: int(getattr(item, name)) for name in ("total", "met", "events", "would_act", "touched", "refused")}
    acts = {
        "times": _times(counts["would_act"]),
        "tickets": _counted(ngettext("%(num)s ticket", "%(num)s tickets", counts["touched"]), counts["touched"]),
    }
    titles = {
        rehearsal_requests.RUNNING: _("The rehearsal is running"),
        rehearsal_requests.CANCELLING: _("The rehearsal is being cancelled"),
        rehearsal_requests.CANCELLED: _(
            "The rehearsal was cancelled: until then the rule would have acted %(times)s on %(tickets)s"
        )
        % acts,
        rehearsal_requests.FAILED: _("The rehearsal ended early"),
    }
    done = _("The rule would have acted %(times)s on %(tickets)s") if counts["would_act"] else ""
    done = done % acts if done else _("The rule would have done nothing")
    return counts | {
        "version": int(item.rule_version),
        "title": titles.get(item.state, done),
        "is_running": rehearsal_requests.REHEARSALS.goes_on(item),
        "can_cancel": item.state == rehearsal_requests.RUNNING,
        "acted": _times(counts["would_act"]),
        "circles": _times(int(item.circles)) if item.circles else "",
        "is_cut": bool(item.is_cut),
        "most": rehearsal_requests.MOST,
        "since": clock.parse(item.since),
        "begun": clock.parse(item.begun_at),
        "trouble": stored_text(item.trouble),
        "why": stored_text(item.why),
    }


def rehearsal_page(
    tenant: TenantContext, item: RehearsalItem, names: Names, found: list[RuleFinding], more: int
) -> dict[str, Any]:
    """Return a rehearsal with what it found, by ticket, and the part where the next page begins, 0 for none."""
    by_ticket = [(number, [*some]) for number, some in groupby(found, key=lambda one: one.number)]
    tally = [
        {"words": _tallied(tenant, name, new, names), "times": _times(int(times))}
        for name, new, times in json.loads(item.tally)
    ]
    tickets = [
        {
            "number": number,
            "url": desk_prefix.address("tickets:ticket", number),
            "lines": [_line(tenant, one, names) for one in some[:_LINES]],
            "others": len(some) - _LINES,
        }
        for number, some in by_ticket
    ]
    return rehearsal_line(item) | {"tally": tally, "tickets": tickets, "more": more}


def people_in(item: RehearsalItem, found: Iterable[RuleFinding]) -> Iterator[str]:
    yield from (new for name, new, _times in json.loads(item.tally) if name == ASSIGNEE.name)
    for one in found:
        yield one.mail_to
        yield from (who for name, *both in one.changes if name == ASSIGNEE.name for who in both)


def _line(tenant: TenantContext, one: RuleFinding, names: Names) -> dict[str, Any]:
    then = f"{desk_prefix.address('tickets:past_ticket', one.number)}?at={one.at}"
    changes = [_change(tenant, name, old, new, names) for name, old, new in one.changes]
    circle = [names.rules.get(rule_id, _("a deleted rule")) for rule_id in one.circle]
    return {
        "at": clock.parse(one.at),
        "then": then,
        "event": EVENTS[one.on],
        "words": [*changes, *_actions(one.answer, one.webhook, one.mail_to, names)],
        "refused": stored_text(one.refused),
        "circle": " → ".join(circle),
    }


def _tallied(tenant: TenantContext, name: str, new: str, names: Names) -> str:
    if not name.startswith(TAG):
        return _change(tenant, name, "", new, names)
    told = _("Add the tag %(tag)s") if new else _("Remove the tag %(tag)s")
    return told % {"tag": name.removeprefix(TAG)}


def _change(tenant: TenantContext, name: str, old: str, new: str, names: Names) -> str:
    """Return a change in words. Of custom fields only the new value is known."""
    defined = definitions.of(tenant)
    if name == ASSIGNEE.name:
        before, after = (names.people.get(one, _("a former member")) if one else _("nobody") for one in (old, new))
    else:
        before, after = (defined.shown(name, one) or _("none") for one in (old, new))
    return f"{defined.label(name)}: {before} → {after}" if old else f"{defined.label(name)}: {after}"


def run_line(run: RunItem) -> dict[str, Any]:
    return {
        "id": run.run_id,
        "number": int(run.number),
        "url": desk_prefix.address("tickets:ticket", int(run.number)),
        "at": clock.parse(run.at),
        "version": int(run.version),
        "event": EVENTS[On(run.event)],
        "why": stored_text(run.why),
        "undone": clock.parse(run.undone_at) if run.undone_at else None,
        "can_undo": bool(run.entry) and not run.undone_at,
    }


def extent_words(extent: Extent) -> str:
    """Say what a rehearsal reads, and for how long."""
    tickets = _counted(ngettext("%(num)s ticket", "%(num)s tickets", extent.tickets), extent.tickets)
    values = {
        "tickets": _("More than %(tickets)s") % {"tickets": tickets} if extent.is_more else tickets,
        "entries": _counted(ngettext("%(num)s entry", "%(num)s entries", extent.entries), extent.entries),
        "seconds": _counted(ngettext("%(num)s second", "%(num)s seconds", extent.seconds), extent.seconds),
    }
    if extent.seconds > 1:
        told = _(
            "%(tickets)s changed in this time, with %(entries)s or more in their histories; "
            "this takes about %(seconds)s."
        )
    else:
        told = _("%(tickets)s changed in this time, with %(entries)s or more in their histories; this takes a moment.")
    return told % values


def _times(count: int) -> str:
    return _counted(ngettext("%(num)s time", "%(num)s times", count), count)


def _counted(text: str, count: int) -> str:
    return text % {"num": locales.current().number(count)}


_LIMIT: Final = 120  # characters of a name or a title


def mail(told: RuleMail) -> MailContent:
    """Return the mail: what the rule says, a link to the ticket, and why it came."""
    desk = plain_text.named(told.tenant.name, limit=60)
    number, title = int(told.summary.number), plain_text.without_controls(told.summary.title, limit=_LIMIT)
    with desk_prefix.addresses_of(told.tenant.slug):
        url = page_for_mail(reverse("tickets:ticket", args=[number]))
    name = plain_text.named(told.rule.name, limit=_LIMIT)
    with locales.shown_in(told.person.locale_at(told.tenant)):
        why = _("The rule “%(name)s” of %(desk)s sent this mail.") % {"name": name, "desk": desk}
    return MailContent(
        sender=formataddr((desk, parseaddr(settings.DEFAULT_FROM_EMAIL)[1])),
        to=[told.person.email],
        subject=f"[{desk}] #{number} {title}",
        body=f"{told.text}\n\n{url}\n\n-- \n{why}\n",
        headers={"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"},
    )
