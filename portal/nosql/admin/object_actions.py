"""Offer what can be done with one object beside saving it; what has consequences asks first, and for a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.text import capfirst

from portal import plain_text
from portal.errors import PortalError

REASON_LIMIT = 300  # characters; an audit row keeps up to 500 of a value


@dataclass(frozen=True)
class ObjectAction:
    """Describe a button of the change form: its name in the form, its label, and what it does.

    With `needs_reason` the button leads to a page that asks for a reason, and with `asks` to one that says what
    follows; only that page's button acts. With both, one page follows the other.
    """

    name: str
    label: str
    description: str
    needs_reason: bool = False
    asks: bool = False


_NO_REASON = "Say why: the audit trail keeps it."


class ReasonField(forms.CharField):
    """Take a reason that somebody can read: white space and invisible characters are none."""

    def __init__(self, **how: Any) -> None:
        super().__init__(max_length=REASON_LIMIT, error_messages={"required": _NO_REASON}, **how)

    def clean(self, value: Any) -> Any:
        reason = super().clean(value)
        if plain_text.has_visible_text(reason):
            return reason
        if self.required:
            raise forms.ValidationError(_NO_REASON)
        return ""


class ReasonForm(forms.Form):
    reason = ReasonField(
        widget=forms.Textarea(attrs={"rows": 3, "autofocus": True}),
        help_text="It is kept in the audit trail with your name.",
    )


class ObjectActions:
    """Add the buttons of `object_actions` to a ModelAdmin's change form."""

    object_actions: ClassVar[tuple[ObjectAction, ...]] = ()
    object_action_template = "nosql_admin/object_action.html"

    def offered_actions(self, request: HttpRequest, obj: Any) -> list[ObjectAction]:
        """Return the actions that make sense for this object and this operator."""
        return list(self.object_actions)

    def follows(self, request: HttpRequest, obj: Any, action: str) -> Iterable[str]:
        """Say in sentences what follows from an action that asks first, or for a reason."""
        return ()

    def perform(self, request: HttpRequest, obj: Any, action: str, *, reason: str) -> str:
        """Do what the action of this name says and return a message about it. Raises PortalError."""
        raise NotImplementedError

    def performed_url(self, request: HttpRequest) -> str:
        """Return where to go afterwards: the same page, unless the object is gone."""
        return request.path

    def action_of(self: Any, request: HttpRequest) -> ObjectAction | None:
        """Return the action whose button was pressed, None for any other request."""
        return next((action for action in self.object_actions if action.name in request.POST), None)

    def act(self: Any, request: Any, object_id: str, action: ObjectAction) -> Any:
        """Perform an action, or ask for its reason first."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        form = ReasonForm(request.POST if "reason" in request.POST else None)
        if action.needs_reason and not form.is_valid():
            return self._ask(request, obj, action, form)
        if action.asks and "confirmed" not in request.POST:
            return self._ask(request, obj, action, form if action.needs_reason else None, is_last=True)
        reason = form.cleaned_data["reason"] if action.needs_reason else ""
        try:
            messages.success(request, self.perform(request, obj, action.name, reason=reason))
        except PortalError as error:
            if error.status >= 500:
                raise
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())
        return HttpResponseRedirect(self.performed_url(request))

    def _ask(
        self: Any, request: Any, obj: Any, action: ObjectAction, form: ReasonForm | None, *, is_last: bool = False
    ) -> TemplateResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": f"{action.label}: {obj}",
            "content": None,  # of one page one reason is asked
            "action": action,
            "form": form,
            "is_last": is_last,
            "follows": list(self.follows(request, obj, action.name)),
            "object": obj,
            "opts": self.opts,
            "module_name": capfirst(self.opts.verbose_name_plural),
        }
        status = 422 if form and form.errors else 200
        return TemplateResponse(request, self.object_action_template, context, status=status)
