"""Take what a requester writes on the page of their ticket."""

from __future__ import annotations

import re
import uuid
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from tickets.desk.rating import WORDS_LIMIT
from tickets.ticket.fields import COMMENT_LIMIT, Rating

_ID: Final = re.compile(r"[0-9a-f]{32}\Z")


class _OnceForm(forms.Form):
    """A form that is taken once: sent again, it changes nothing. Its id names the files that were sent for it, too."""

    request_id = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        sent = str(self.data.get("request_id", ""))
        self.once = sent if _ID.match(sent) else uuid.uuid4().hex


class AnswerForm(_OnceForm):
    """The answer of a requester."""

    body = forms.CharField(
        label=_("Your answer"),
        widget=forms.Textarea(attrs={"rows": 6}),
        max_length=COMMENT_LIMIT,
        strip=False,
        error_messages={"required": _("Write something first.")},
    )


class RatingForm(_OnceForm):
    """The rating of a ticket by its requester."""

    rating = forms.ChoiceField(
        label=_("Were we of help?"),
        choices=[(Rating.GOOD.value, _("Good")), (Rating.BAD.value, _("Bad"))],
        widget=forms.RadioSelect,
        error_messages={"required": _("Choose good or bad."), "invalid_choice": _("Choose good or bad.")},
    )
    words = forms.CharField(
        label=_("What should we know?"),
        required=False,
        max_length=WORDS_LIMIT,
        widget=forms.Textarea(attrs={"rows": 3}),
        strip=False,
    )
