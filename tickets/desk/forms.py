"""Forms about tickets. Limits and meanings are those of fields.py."""

from __future__ import annotations

from typing import Any, Self

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from portal.errors import Invalid
from tickets.desk import lifecycle
from tickets.ticket import fields

_PRIORITIES = [(p.value, p.label) for p in fields.Priority]


class Resendable(forms.Form):
    """A form that a conflict page shows again, holding what the person sent and the version to put it on."""

    def again(self, data: QueryDict) -> Self:
        form = type(self)(data)
        form.is_valid()
        return form


class TicketForm(Resendable):
    """A new ticket, or the editable part of one. `version` is empty for a new one."""

    title = forms.CharField(max_length=fields.TITLE_LIMIT, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    description = forms.CharField(
        required=False,
        max_length=fields.DESCRIPTION_LIMIT,
        strip=False,
        help_text="Markdown works here.",
        widget=forms.Textarea(attrs={"rows": 12}),
    )
    priority = forms.ChoiceField(choices=_PRIORITIES, initial=fields.Priority.NORMAL.value)
    tags = forms.CharField(
        required=False,
        max_length=1000,
        help_text="Separated by commas, at most 12.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)
    request_id = forms.RegexField(r"^[0-9a-f]{32}$", widget=forms.HiddenInput, initial=lifecycle.new_request_id)

    def clean_description(self) -> str:
        # Browsers send CRLF; stored is LF, so that nothing differs that nobody changed.
        text: str = self.cleaned_data["description"]
        return text.replace("\r\n", "\n").strip()

    def clean_tags(self) -> list[str]:
        try:
            return fields.tag_list(self.cleaned_data["tags"])
        except Invalid as error:
            raise ValidationError(error.message) from error

    @property
    def values(self) -> dict[str, Any]:
        """The cleaned fields as the rules take them."""
        data = self.cleaned_data
        return {
            "title": data["title"],
            "description": data["description"],
            "priority": fields.Priority(data["priority"]),
            "tags": data["tags"],
        }


class CommentForm(forms.Form):
    body = forms.CharField(
        label="Comment",
        max_length=fields.COMMENT_LIMIT,
        error_messages={"required": "Write something first."},
        widget=forms.Textarea(attrs={"rows": 5, "placeholder": "Write a comment. Markdown works here."}),
    )
    internal = forms.BooleanField(label="Internal note", required=False)
    request_id = forms.RegexField(r"^[0-9a-f]{32}$", widget=forms.HiddenInput, initial=lifecycle.new_request_id)

    def clean_body(self) -> str:
        text: str = self.cleaned_data["body"]
        return text.replace("\r\n", "\n")


class ChangeForm(Resendable):
    """A quick change from the ticket's side bar: one of the fields, on the version that the person saw."""

    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    status = forms.ChoiceField(
        required=False, choices=[(s.value, s.label) for s in fields.Status], widget=forms.HiddenInput
    )
    priority = forms.ChoiceField(required=False, choices=_PRIORITIES, widget=forms.HiddenInput)
    resolver = forms.CharField(required=False, max_length=32, widget=forms.HiddenInput)
