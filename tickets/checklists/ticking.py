"""Tick an item of a checklist, on top of whatever others change in the same text at the same time."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext

from portal.errors import NotFound
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, comment_changes
from tickets.desk.changing import EditConflict, Wishes
from tickets.ticket import stored
from tickets.ticket.checklists import Tick

_ATTEMPTS: Final = 6
_SHOWN: Final = 80  # characters of an item in the history


def tick(tenant: TenantContext, number: int, wanted: Tick) -> None:
    """Tick an item, or take its tick away. One that is so already changes nothing.

    A description is a change like any other, on the version that was read; a comment keeps its earlier text. Where
    others were quicker, the text is read again and the item found by its words. Raises NotFound, and Conflict where it
    is not there any more.
    """
    if wanted.entry:
        _tick_comment(tenant, number, wanted)
        return
    for attempt in range(_ATTEMPTS):
        # The version first: where others change the description in between, the change meets a conflict.
        version = int(changing.read(tenant, number).version)
        before = changing.read_description(tenant, number)
        after = wanted.applied(before)
        if after == before:
            return
        words = wanted.item_of(before).words
        shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
        verb = f"{'ticked' if wanted.to else 'unticked'} “{shown}”:"
        try:
            changing.change(tenant, number, Wishes(restoring=verb, description=after), version=version)
        except EditConflict:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _tick_comment(tenant: TenantContext, number: int, wanted: Tick) -> None:
    try:
        sort = stored.of_reference(wanted.entry)
    except ValueError as error:
        raise NotFound(gettext("There is no such comment.")) from error
    comment_changes.tick(tenant, number, sort, wanted.applied)
