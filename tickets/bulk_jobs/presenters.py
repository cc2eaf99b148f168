"""Bulk jobs as templates show them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal import clock
from portal.web import desk_prefix, locales
from portal.web.locales import stored_text
from tenants.tenancy.context import TenantContext
from tickets.bulk_jobs import bulk_requests
from tickets.bulk_jobs.bulk_requests import Job
from tickets.custom_fields import definitions
from tickets.desk.many import TicketEdit
from tickets.desk.queue_presenters import QueueAddress, chips
from tickets.ticket.fields import ASSIGNEE, BY_NAME, CUSTOM

_NAMED: Final = 100  # refused tickets on a page


def edit_words(tenant: TenantContext, edit: TicketEdit, people: Mapping[str, str]) -> list[str]:
    """Return what an edit asks for, each part in words. `people` are the names of members by id."""
    defined = definitions.of(tenant)
    shown = {name: BY_NAME[name].shown(value) for name, value in edit.values.items() if name != CUSTOM.name}
    shown |= defined.texts(edit.values)
    if who := edit.values.get(ASSIGNEE.name):
        shown[ASSIGNEE.name] = people.get(who, _("a former member"))
    words = [f"{defined.label(name)}: {text or _('none')}" for name, text in shown.items()]
    words += [_("Add tags: %(tags)s") % {"tags": ", ".join(edit.add_tags)}] if edit.add_tags else []
    removed = [_("Remove tags: %(tags)s") % {"tags": ", ".join(edit.remove_tags)}] if edit.remove_tags else []
    return words + removed


def list_words(tenant: TenantContext, params: Mapping[str, str], people: Mapping[str, str]) -> str:
    address = QueueAddress.of(dict(params))
    known = {"": "", "me": _("yours"), "none": _("unassigned")}
    who = known.get(address.who, people.get(address.who, _("of one person")))
    return ", ".join([address.label, *([who] if who else []), *(chip["label"] for chip in chips(tenant, address))])


def people_in(job: Job) -> Iterator[str]:
    """Yield the members whom a job names: who began it, whom it assigns and whose tickets it lists."""
    yield job.by_id
    if job.edit:
        yield TicketEdit.load(job.edit).values.get(ASSIGNEE.name) or ""
    if job.listed:
        yield QueueAddress.of(json.loads(job.listed)).who


def job_page(tenant: TenantContext, job: Job, people: Mapping[str, str], *, first: int) -> dict[str, Any]:
    """Return what the page of a job shows, from one of its parts on."""
    outcomes = bulk_requests.outcomes(tenant, job, first=first)
    changed = [entry.number for one in outcomes for entry in one.entries]
    refused = [(number, why) for one in outcomes for number, why in one.refused]
    behind = first + bulk_requests.SHOWN
    return job_line(tenant, job, people) | {
        "changed_tickets": [_link(number) for number in changed],
        "refused_tickets": [_link(number) | {"reason": stored_text(why)} for number, why in refused],
        "is_late": first > 1,
        "more": behind if behind <= int(job.parts) else 0,
    }


def job_line(tenant: TenantContext, job: Job, people: Mapping[str, str]) -> dict[str, Any]:
    is_running = job.state in bulk_requests.BULKS.unfinished
    met = int(job.changed + job.unchanged + job.refused)
    is_mine = job.by_id == tenant.user_id or tenant.is_admin
    return {
        "id": job.job_id,
        "url": desk_prefix.address("tickets:bulk_job", job.job_id),
        "state": job.state,
        "is_running": is_running,
        "is_cancelling": job.state == bulk_requests.CANCELLING,
        "is_undo": bool(job.undoes),
        "title": _title(job),
        "words": edit_words(tenant, TicketEdit.load(job.edit), people) if job.edit else [],
        "listed": list_words(tenant, json.loads(job.listed), people) if job.listed else "",
        "by": people.get(job.by_id, _("An API key") if job.by_key else _("A former member")),
        "begun": clock.parse(job.begun_at),
        "total": int(job.total),
        "met": met,
        "changed": int(job.changed),
        "unchanged": int(job.unchanged),
        "refused": int(job.refused),
        "why": stored_text(job.why or ""),
        "trouble": stored_text(getattr(job, "trouble", "") or ""),
        "can_cancel": is_mine and job.state == bulk_requests.RUNNING,
        "can_undo": is_mine and not is_running and not job.undoes and int(job.changed) > 0,
    }


def _title(job: Job) -> str:
    changed = int(job.changed)
    titles = {
        bulk_requests.RUNNING: (_("The bulk change is running"), _("The undo of a bulk change is running")),
        bulk_requests.CANCELLING: (
            _("The bulk change is being cancelled"),
            _("The undo of a bulk change is being cancelled"),
        ),
        bulk_requests.CANCELLED: (_("The bulk change was cancelled"), _("The undo of a bulk change was cancelled")),
        bulk_requests.FAILED: (_("The bulk change ended early"), _("The undo of a bulk change ended early")),
    }
    done = (
        ngettext(
            "The bulk change is done: %(num)s ticket changed",
            "The bulk change is done: %(num)s tickets changed",
            changed,
        ),
        ngettext(
            "The undo of a bulk change is done: %(num)s ticket changed",
            "The undo of a bulk change is done: %(num)s tickets changed",
            changed,
        ),
    )
    return titles.get(job.state, done)[bool(job.undoes)] % {"num": locales.current().number(changed)}


def _link(number: int) -> dict[str, Any]:
    return {"number": number, "url": desk_prefix.address("tickets:ticket", number)}


def list_url(params: Mapping[str, str]) -> str:
    return f"{desk_prefix.address('tickets:queue')}?{urlencode(dict(params))}"


def left_over(numbers: Collection[int]) -> str:
    """Say how many tickets had the values already."""
    said = ngettext(
        "%(num)s ticket had these values already.", "%(num)s tickets had these values already.", len(numbers)
    )
    return said % {"num": locales.current().number(len(numbers))} if numbers else ""
