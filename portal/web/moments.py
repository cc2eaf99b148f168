"""Take the moment of the past that a page is asked about, in the zone of its reader; commands take it in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Invalid
from portal.web import locales


class MomentForm(forms.Form):
    """Take a moment in the zone of the reader, as `moment` reads it."""

    at = forms.CharField(
        max_length=40,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1", "required": True}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["at"].label = _("As of (%(zone)s)") % {"zone": locales.current().zone}


def moment(text: str) -> str:
    """Return the stamp of a moment as an address has it: a stamp, or in the reader's zone what a browser's input sends.

    Without a fraction of a second it is the end of that second; "" is now. Raises Invalid for anything else, and for
    what has not come yet.
    """
    text = text.strip()
    if not text:
        return clock.stamp()
    try:
        at = datetime.fromisoformat(text)
        at = (at if at.tzinfo else at.replace(tzinfo=clock.zone_of(locales.current().zone))).astimezone(UTC)
    except (ValueError, OverflowError) as error:  # of the first and the last year a zone leads out
        raise Invalid(
            _("Write a moment as 2026-11-20T10:00:00, in %(zone)s.") % {"zone": locales.current().zone}, field="at"
        ) from error
    if "." not in text:
        at = at.replace(microsecond=999_999)
    now = clock.now()
    if at.replace(microsecond=0) > now:
        raise Invalid(_("This moment has not come yet."), field="at")
    return clock.stamp(min(at, now))


def page(at: str) -> dict[str, Any]:
    """Return what each page of the past says of its moment, a stamp; the input holds it to the second."""
    moment = clock.parse(at)
    local = locales.current().local(moment).replace(tzinfo=None, microsecond=0)
    return {"at": at, "moment": moment, "form": MomentForm(initial={"at": local.isoformat()})}
