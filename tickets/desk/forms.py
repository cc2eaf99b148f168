"""Forms about tickets. Limits and meanings are those of tickets/ticket/fields.py."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, Self

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import plain_text
from portal.errors import Invalid
from portal.web.locales import in_sentence
from tenants.membership.forms import OfferedMembers
from tickets.attachments.forms import files_field
from tickets.custom_fields.definitions import Definitions
from tickets.custom_fields.forms import defined_field, value_fields
from tickets.desk import changing
from tickets.requesters.forms import requester_field
from tickets.ticket import custom_values, fields
from tickets.ticket.fields import (
    CUSTOM,
    CUSTOM_PREFIX,
    DEFINED,
    GROUP,
    KIND,
    ChoiceField,
    LongTextField,
    TextField,
    TicketField,
)
from tickets.ticket.stored import SummaryItem


class TagsInput(forms.TextInput):
    """A text field for tags, separated by commas, whose browser offers those that are used most."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        completes = {
            "list": f"{name}-options",
            "autocomplete": "off",
            "hx-get": reverse("tickets:tag_options"),
            "hx-trigger": "input changed delay:150ms, focus once",
            "hx-target": f"#{name}-options",
            "hx-swap": "innerHTML",
            "hx-sync": "this:replace",
            "hx-push-url": "false",
            "data-quiet": "",
        }
        return super().get_context(name, value, {**completes, **(attrs or {})})

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        field = super().render(name, value, attrs, renderer)
        return format_html('{}<datalist id="{}-options"></datalist>', field, name)


class WrittenField(forms.Field):
    """A text that somebody writes, checked and brought into its stored form by one of the functions of fields.py.

    The input has no `maxlength`: browsers cut what is pasted to it without a word. It names its limit for the counter
    of static/js/forms.js, and a text that is too long is refused with all of it still there.
    """

    def __init__(self, stored: Callable[[str], Any], *, limit: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stored = stored
        self.widget.attrs["dir"] = "auto"
        if limit:
            self.widget.attrs["data-characters"] = limit

    def clean(self, value: str | None) -> Any:
        if self.required and not (value or "").strip():
            raise ValidationError(self.error_messages["required"], code="required")
        try:
            return self.stored(value or "")
        except Invalid as error:
            raise ValidationError(error.message, code="invalid") from error


class Resendable(forms.Form):
    """A form that a conflict page shows again, holding what the person sent and the version to put it on."""

    def again(self, data: QueryDict) -> Self:
        form = type(self)(data)
        form.is_valid()
        return form


def _of(field: TicketField) -> forms.Field:
    if isinstance(field, ChoiceField):
        return forms.ChoiceField(
            label=field.label, choices=field.choices, initial=str(field.initial), required=not field.is_optional
        )
    line = forms.TextInput(attrs={"autocomplete": "off"})
    if isinstance(field, LongTextField):
        area = forms.Textarea(attrs={"rows": 12, "data-markdown": True})
        return WrittenField(
            field.rule,
            label=field.label,
            limit=field.limit,
            required=False,
            help_text=_("You can use Markdown."),
            widget=area,
        )
    if isinstance(field, TextField):
        required = {"required": _("Enter a %(field)s.") % {"field": in_sentence(field.label)}}
        return WrittenField(field.rule, label=field.label, limit=field.limit, error_messages=required, widget=line)
    many = _("Separate them with commas. At most %(most)s.") % {"most": fields.TAGS_LIMIT}
    return WrittenField(fields.tag_list, label=field.label, required=False, help_text=many, widget=TagsInput)


class TicketForm(Resendable):
    """A new ticket, or the editable part of one. `version` is empty for a new one."""

    version = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)
    request_id = forms.RegexField(r"^[0-9a-f]{32}$", widget=forms.HiddenInput, initial=changing.new_request_id)

    def __init__(self, *args: Any, defined: Definitions, stored: SummaryItem | None = None, **kwargs: Any) -> None:
        """Make the form of the kind that is sent, else of that of the `stored` ticket, else of the default one."""
        super().__init__(*args, **kwargs)
        self.defined, self.stored = defined, stored
        sent = self.data if self.is_bound else self.initial
        self.shown_kind = str(sent[KIND.name]) if KIND.name in sent else self._kind_before
        kind, group = (defined_field(defined, one, getattr(stored, one.name) if stored else None) for one in DEFINED)
        own = value_fields(defined, self.shown_kind, stored.custom if stored else {})
        edited = {field.name: _of(field) for field in fields.EDITED if field not in (*DEFINED, CUSTOM)}
        named = {name: one for name, one in ((KIND.name, kind), (GROUP.name, group)) if one}
        self.fields = named | edited | own | self.fields
        self.own = [self[name] for name in own]
        if not self.is_bound:
            begun = {KIND.name: self.shown_kind, "description": self._template(self.shown_kind)}
            self.initial = {**begun, **self.initial}

    @property
    def choices(self) -> list[forms.BoundField]:
        return [self[one.name] for one in fields.CHANGED if one.name in self.fields]

    @property
    def _kind_before(self) -> str:
        return self.stored.kind if self.stored else self.defined.default_kind

    def _template(self, kind_id: str) -> str:
        known = self.defined.kinds_by_id.get(kind_id)
        return known.template if known and not self.stored else ""

    @property
    def kept(self) -> list[dict[str, str]]:
        """The values of the stored ticket that this form does not ask for: they stay."""
        values = self.stored.custom if self.stored else {}
        left = {one: text for one, text in values.items() if one not in self.fields}
        return [
            {"label": self.defined.label(name), "value": self.defined.shown(name, text)}
            for name, text in CUSTOM.by_change(left).items()
        ]

    def switched(self, before: str) -> Self:
        """Return the form of the kind that was chosen in this one, with what was typed. A description that is the
        template of the kind `before` becomes the one of the new kind."""
        data = dict(self.data.items())
        if plain_text.block(str(data.get("description", ""))) in ("", self._template(before)):
            data["description"] = self._template(self.shown_kind)
        typed = {name: data.get(name, "") for name in (*self.fields, *filter(custom_values.is_field_id, data))}
        return type(self)(initial=typed | {KIND.name: self.shown_kind}, **self._made_with())

    @property
    def carried(self) -> dict[str, str]:
        """The values typed into fields of another kind, which are there again when that kind is chosen again."""
        typed = self.data if self.is_bound else self.initial
        return {one: typed[one] for one in filter(custom_values.is_field_id, typed) if one not in self.fields}

    def clean(self) -> dict[str, Any] | None:
        """Say once what was typed into fields that are no longer in this form: it would be lost."""
        asked = {*str(self.data.get("asked", "")).split()} - {*self.fields}
        was = self.stored.custom if self.stored else {}
        for one in sorted(filter(custom_values.is_field_id, asked)):
            if (typed := plain_text.line(str(self.data.get(one, "")))) and typed != was.get(one, ""):
                change = f"{CUSTOM_PREFIX}{one}"
                label, shown = self.defined.label(change), self.defined.shown(change, typed)
                said = _(
                    "This form no longer asks “%(label)s”, where you entered “%(value)s”. Save again to leave it out."
                )
                self.add_error(None, said % {"label": label, "value": shown})
        return super().clean()

    def _made_with(self) -> dict[str, Any]:
        return {"defined": self.defined, "stored": self.stored}

    def again(self, data: QueryDict) -> Self:
        form = type(self)(data, **self._made_with())
        form.is_valid()
        return form

    @property
    def values(self) -> dict[str, Any]:
        """The cleaned fields as the rules take them. A kind or a group that the form did not offer stays."""
        edited = {field.name: self.cleaned_data[field.name] for field in fields.EDITED if field.name in self.fields}
        return edited | {CUSTOM.name: {one.name: self.cleaned_data[one.name] for one in self.own}}


class NewTicketForm(TicketForm):
    """A new ticket, which somebody may get at once. `people` are those who can."""

    resolver = forms.CharField(label=gettext_lazy("Assignee"), required=False, max_length=32)
    attached = files_field()
    requester = requester_field(
        label=gettext_lazy("Requester"),
        required=False,
        help_text=gettext_lazy(
            "A person outside the desk, who can read the description. Leave it empty for a ticket of your own."
        ),
    )

    def __init__(self, *args: Any, people: OfferedMembers, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.people, nobody = people, ("", _("Unassigned"))
        if people.find is None:
            self.fields["resolver"].widget = forms.Select(choices=[nobody, *people])
        else:
            self.fields["resolver"] = people.field(nobody, label=gettext_lazy("Assignee"))

    def _made_with(self) -> dict[str, Any]:
        return super()._made_with() | {"people": self.people}

    @property
    def values(self) -> dict[str, Any]:
        return super().values | {"resolver": self.cleaned_data["resolver"]}


class CommentForm(forms.Form):
    """A comment or an internal note. `seen` is the status that the author saw, `seen_at` when it had changed last."""

    body = WrittenField(
        fields.comment,
        limit=fields.COMMENT_LIMIT,
        label=gettext_lazy("Comment"),
        error_messages={"required": gettext_lazy("Write something first.")},
        widget=forms.Textarea(attrs={"rows": 5, "placeholder": gettext_lazy("Write a comment. You can use Markdown.")}),
    )
    attached = files_field()
    internal = forms.BooleanField(label=gettext_lazy("Internal note"), required=False)
    cc = forms.CharField(
        label=gettext_lazy("Copies to"),
        required=False,
        help_text=gettext_lazy(
            "A letter with copies has no link to the requester's page: others could answer there in their name."
        ),
        widget=forms.TextInput(
            attrs={
                "autocomplete": "off",
                "spellcheck": "false",
                "placeholder": gettext_lazy("Mail addresses, separated by commas"),
            }
        ),
    )
    request_id = forms.RegexField(r"^[0-9a-f]{32}$", widget=forms.HiddenInput, initial=changing.new_request_id)
    seen = forms.ChoiceField(
        required=False, choices=[(s.value, s.value) for s in fields.Status], widget=forms.HiddenInput
    )
    seen_at = forms.CharField(required=False, max_length=40)  # in the part of the page that keeps itself up to date

    @classmethod
    def empty(cls, **initial: str) -> CommentForm:
        """Return a form to be shown. It shares its fields with all others: Django would copy each of them, and its
        widget, for each page of a ticket."""
        form = copy(_empty_form())
        form.initial, form._bound_fields_cache = initial, {}  # type: ignore[attr-defined]  # missing in the stubs
        return form

    def takes_no_text(self) -> None:
        """Let the text be empty: files may be all that somebody has to say."""
        body: Any = self.fields["body"]
        body.required, body.stored = False, lambda text: fields.comment(text) if text.strip() else ""


@cache
def _empty_form() -> CommentForm:
    return CommentForm()


class RequesterOfTicketForm(forms.Form):
    """Another person for whom a ticket is, on the version that the agent saw."""

    requester = requester_field(
        label=gettext_lazy("Requester"),
        help_text=gettext_lazy("A person whom the desk knows, or somebody new by name and address."),
    )
    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput)


class ChangeForm(Resendable):
    """A quick change from the ticket's side bar, on the version that the person saw: an assignee, or of the group and
    the fields that have a few values those that the form names."""

    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    resolver = forms.CharField(required=False, max_length=32, widget=forms.HiddenInput)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data)
        choices = [choice for choice in fields.CHANGED if choice.name in data]
        self.chosen: list[TicketField] = [*choices, *([GROUP] if GROUP.name in data else [])]
        if GROUP.name in data:
            self.fields[GROUP.name] = forms.CharField(required=False, max_length=20, widget=forms.HiddenInput)
        for choice in choices:
            self.fields[choice.name] = forms.ChoiceField(
                required=not choice.is_optional, choices=choice.choices, widget=forms.HiddenInput
            )

    @property
    def values(self) -> dict[str, Any]:
        """The chosen fields as the rules take them."""
        return {choice.name: self.cleaned_data[choice.name] for choice in self.chosen}
