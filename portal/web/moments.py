"""Take the moment of the past that a page is asked about, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms

from portal import clock
from portal.errors import Invalid


class MomentForm(forms.Form):
    """Take a moment in UTC, as `moment` reads it."""

    at = forms.CharField(
        label="As of (UTC)",
        max_length=40,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1", "required": True}),
    )


def moment(text: str) -> str:
    """Return the stamp of a moment as an address has it: a stamp, or what a browser's input sends, in UTC.

    Without a fraction of a second it is the end of that second; "" is now. Raises Invalid for anything else, and for
    what has not come yet.
    """
    text = text.strip()
    if not text:
        return clock.stamp()
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:  # of the first and the last year a zone leads out
        raise Invalid("Write a moment as 2026-11-20T10:00:00, in UTC.", field="at") from error
    if "." not in text:
        at = at.replace(microsecond=999_999)
    now = clock.now()
    if at.replace(microsecond=0) > now:
        raise Invalid("This moment has not come yet.", field="at")
    return clock.stamp(min(at, now))


def page(at: str) -> dict[str, Any]:
    """Return what each page of the past says of its moment, a stamp; the input holds it to the second."""
    moment = clock.parse(at)
    return {"at": at, "moment": moment, "form": MomentForm(initial={"at": at[:19]})}
