"""Rename, merge and delete a tag on all tickets of a desk, as a bulk job, and suggest tags by their use.

The counts are those of the aggregates, which hold the tags that are used most; so a page and a suggestion cost the same
however many tags a desk has. A tag that is no leader there is typed.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _

from portal import plain_text
from portal.errors import Invalid
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tickets.bulk_jobs import bulk_requests
from tickets.dashboards import dashboard
from tickets.desk.many import TicketEdit
from tickets.desk_setup import setup
from tickets.ticket import fields

SUGGESTED: Final = 8


def one(text: str, *, field: str = "tag") -> str:
    """Return the one tag that somebody typed, as tickets have it. Raises Invalid."""
    try:
        tags = fields.tag_list(text)
    except Invalid as error:
        raise Invalid(error.message, field=field) from error
    if len(tags) != 1:
        raise Invalid(_("Enter one tag."), field=field)
    return tags[0]


def rename(tenant: TenantContext, tag: str, *, to: str, by: Actor) -> str:
    """Let all tickets with a tag have another one in its place, which is a merge where some have that already; return
    the id of the job. Its colour goes with it. Raises Invalid, and Conflict while another job of the desk is running.
    """
    old, new = one(tag), one(to, field="to")
    if old == new:
        raise Invalid(_("Enter another name."), field="to")
    edit = TicketEdit.of({}, add_tags=[new], remove_tags=[old])
    job_id = bulk_requests.ask(tenant, edit, by=by, params={"status": "any", "tag": old})
    colours = setup.colours_of(tenant)
    if old in colours:
        setup.change_colours(tenant, {old: "", new: colours.get(new) or colours[old]}, by=by)
    return job_id


def delete(tenant: TenantContext, tag: str, *, by: Actor) -> str:
    """Take a tag from all tickets, and return the id of the job. Raises Invalid and Conflict as `rename` does."""
    old = one(tag)
    edit = TicketEdit.of({}, remove_tags=[old])
    job_id = bulk_requests.ask(tenant, edit, by=by, params={"status": "any", "tag": old})
    setup.change_colours(tenant, {old: ""}, by=by)
    return job_id


def suggest(tenant: TenantContext, typed: str) -> list[str]:
    """Return what a field of tags may become: what is typed with its last tag completed, the most used first. Two
    reads at the same time."""
    before, comma, last = typed.rpartition(",")
    begun, given = plain_text.word(last), {plain_text.word(tag) for tag in before.split(",")}
    known = [load.key for load in dashboard.tags(tenant).tags if load.key not in given and load.key != begun]
    fitting = [tag for tag in known if tag.startswith(begun)]
    fitting += [tag for tag in known if begun in tag and tag not in fitting]
    head = f"{before.strip()}, " if comma and before.strip() else ""
    return [head + tag for tag in fitting[:SUGGESTED]]
