"""The form of a ready answer. The rules check what is typed; a form only takes it."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from tenants.membership.forms import OfferedMembers
from tickets.ready_answers.answer_reading import SHORTCUT_LIMIT, TITLE_LIMIT, Given
from tickets.ready_answers.filling import PLACEHOLDERS
from tickets.ticket.fields import COMMENT_LIMIT, Status

MINE: Final = "mine"
SHARED: Final = "shared"


def _line(limit: int = 0) -> forms.TextInput:
    counted = {"data-characters": limit} if limit else {}
    return forms.TextInput(attrs={"autocomplete": "off", "dir": "auto", **counted})


class ReadyAnswerForm(forms.Form):
    """A new answer, or a stored one: then `version` is the one that its author saw."""

    title = forms.CharField(
        label=_("Title"), widget=_line(TITLE_LIMIT), error_messages={"required": _("Enter a title.")}
    )
    shortcut = forms.CharField(
        label=_("Shortcut"),
        help_text=_("A word, such as refund: type ; and its first letters in a comment."),
        widget=_line(SHORTCUT_LIMIT),
        error_messages={"required": _("Enter a shortcut.")},
    )
    whose = forms.ChoiceField(
        label=_("Who can use it"),
        choices=((MINE, _("Only me")), (SHARED, _("Everybody who answers at this desk"))),
        widget=forms.RadioSelect,
        initial=MINE,
    )
    body = forms.CharField(
        label=_("Text"),
        help_text=format_lazy(
            _(
                "You can use Markdown, and as placeholders {placeholders}. "
                "With {{requester|there}} you say what stands where a ticket has none."
            ),
            placeholders=", ".join(f"{{{name}}}" for name in PLACEHOLDERS),
        ),
        widget=forms.Textarea(
            attrs={"rows": 10, "data-markdown": True, "dir": "auto", "data-characters": COMMENT_LIMIT}
        ),
        error_messages={"required": _("Write something first.")},
    )
    status = forms.ChoiceField(
        label=_("Set the status to"),
        required=False,
        choices=[("", _("Leave it as it is")), *((one.value, _(one.label)) for one in Status)],
    )
    tags = forms.CharField(
        label=_("Add tags"), required=False, help_text=_("Separate them with commas."), widget=_line()
    )
    resolver = forms.ChoiceField(label=_("Assign to"), required=False)
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(self, *args: Any, people: OfferedMembers, may_share: bool, is_new: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = [("", _("Leave it as it is")), ("me", _("Whoever uses the answer"))]
        given = str(self.initial.get("resolver", "")) or ("" if people.find else str(self.data.get("resolver", "")))
        if given and given not in dict([*others, *people]):
            others.append((given[:32], _("A former member")))
        self.fields["resolver"] = people.field(*others, label=_("Assign to"))
        if not (may_share and is_new):
            del self.fields["whose"]

    @property
    def shared(self) -> bool:
        """True of a new answer that is for everybody."""
        return self.cleaned_data.get("whose") == SHARED

    @property
    def given(self) -> Given:
        """The values as the rules take them."""
        typed = self.cleaned_data
        tags = tuple(one for one in typed["tags"].split(",") if one.strip())
        return Given(typed["title"], typed["shortcut"], typed["body"], typed["status"], tags, typed["resolver"])


def initial_of(given: Given, version: int) -> dict[str, Any]:
    return {
        "title": given.title,
        "shortcut": given.shortcut,
        "body": given.body,
        "status": given.status,
        "tags": ", ".join(given.tags),
        "resolver": given.resolver,
        "version": version,
    }
