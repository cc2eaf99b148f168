"""Find accounts by e-mail or id, create and disable them, set passwords, end sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.html import format_html_join

from portal import clock
from portal.nosql import session_store
from portal.nosql.admin import DynamoAdmin, ObjectAction
from portal.nosql.admin.stale_forms import SeenForm
from tenants.admin.named_columns import with_id
from tenants.identity import accounts, session_lifecycle, suppressed_addresses
from tenants.identity.models import User
from tenants.operators.account_facades import Account
from tenants.operators.operator_site import actor
from tenants.second_factors import factor_changes

_NEW = forms.PasswordInput(attrs={"autocomplete": "new-password"})


class AccountForm(SeenForm):
    """Take a password twice: a new account needs one, and another account's is replaced unless it is left empty."""

    password1 = forms.CharField(label="New password", strip=False, max_length=1000, required=False, widget=_NEW)
    password2 = forms.CharField(label="Confirm password", strip=False, max_length=1000, required=False, widget=_NEW)

    def clean(self) -> Any:
        cleaned = super().clean()
        password = cleaned.get("password1") or ""
        if not password and self.instance._state.adding:
            self.add_error("password1", "A new account needs a password.")
        if password != (cleaned.get("password2") or ""):
            self.add_error("password2", "The two passwords are not the same.")
        elif password:
            person = User(email=cleaned.get("email") or self.instance.email, name=cleaned.get("name") or "")
            try:
                password_validation.validate_password(password, person)
            except ValidationError as error:
                self.add_error("password1", error)
        return cleaned


@admin.register(Account)
class AccountAdmin(DynamoAdmin):
    may_add = may_change = True
    form = AccountForm
    list_display = ("email", "title", "is_active", "is_operator", "created_at")
    list_filter = ("disabled",)
    search_fields = ("=email", "=user_id")
    search_help_text = "The whole e-mail address or the id"
    object_actions = (
        ObjectAction(
            "_disable", "Disable", "Every session ends and nobody can sign in with this account.", needs_reason=True
        ),
        ObjectAction("_enable", "Enable", "The person can sign in again."),
        ObjectAction("_sign_out", "Sign out everywhere", "Every session ends; the password stays.", asks=True),
        ObjectAction(
            "_operator", "Make operator", "The person can then do everything that you can do here.", needs_reason=True
        ),
        ObjectAction(
            "_no_operator", "Remove operator", "The person keeps the account and loses this admin.", needs_reason=True
        ),
        ObjectAction(
            "_reset_factors",
            "Reset second factors",
            "All second factors and recovery codes go and every session ends; the person signs in by the password "
            "alone. Make sure that it is the person who asks.",
            needs_reason=True,
        ),
        ObjectAction("_mail", "Allow mail again", "Mail is sent to this address again.", asks=True),
    )

    @admin.display(description="name")
    def title(self, obj: Any) -> Any:
        return with_id(obj.name, obj.user_id)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        if obj is None:
            return ("email", "name", "is_operator", "password1", "password2")
        readonly = (
            "email",
            "name",
            "is_active",
            "is_operator",
            "second_factors",
            "session_epoch",
            "created_at",
            "user_id",
            "mail",
            "see",
        )
        return (*readonly, "password1", "password2")

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Any:
        return self.get_fields(request, obj)[:-2] if obj else ()

    @admin.display(description="mail")
    def mail(self, obj: Any) -> str:
        """Say whether mail is sent to this address."""
        known = suppressed_addresses.of([obj.email]).get(obj.email)
        return known.in_full if known else "is sent to this address"

    @admin.display(description="see also")
    def see(self, obj: Any) -> Any:
        """Link to where else this person is."""
        kinds = (("session", "sessions"), ("membership", "memberships"))
        links = [(f"{reverse(f'admin:tenants_{kind}_changelist')}?user_id={obj.pk}", text) for kind, text in kinds]
        return format_html_join(", ", '<a href="{}">{}</a>', links)

    def offered_actions(self, request: Any, obj: Any) -> list[ObjectAction]:
        """Leave out what is so already, and what an operator may not do to their own account."""
        is_somebody_else = obj.pk != request.user.pk
        offered: Mapping[str, bool] = {
            "_disable": obj.is_active and is_somebody_else,
            "_enable": not obj.is_active,
            "_sign_out": True,
            "_operator": not obj.is_operator,
            "_no_operator": obj.is_operator and is_somebody_else,
            "_reset_factors": bool(obj.second_factors) and is_somebody_else,
            "_mail": bool(suppressed_addresses.of([obj.email])),
        }
        return [action for action in self.object_actions if offered[action.name]]

    def add(self, request: Any, obj: Any, form: Any) -> None:
        user = accounts.create(
            email=obj.email,
            name=obj.name,
            password=form.cleaned_data["password1"],
            is_operator=obj.is_operator,
            by=actor(request),
        )
        obj.user_id, obj.email = user.id, user.email

    def change(self, request: Any, obj: Any, form: Any) -> None:
        if form.cleaned_data["password1"]:
            accounts.set_password(obj.user_id, form.cleaned_data["password1"], by=actor(request))

    def follows(self, request: Any, obj: Any, action: str) -> Iterable[str]:
        """List the sessions that end, where they do."""
        if action == "_reset_factors":
            yield "The person gets a mail about it, with the reason."
        if action not in ("_sign_out", "_disable", "_reset_factors"):
            return
        for item in session_store.of_user(obj.pk):
            origin = f" from {item.address}" if item.address else ""
            since = clock.parse(item.started_at or "")
            yield f"{session_lifecycle.browser_of(item.agent or '')}{origin}, signed in {since:%-d %b %Y, %H:%M} UTC"

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        by = actor(request)
        if action == "_sign_out":
            accounts.sign_out_everywhere(obj.user_id, by=by)
            return f"{obj.email} is signed out on every device."
        if action == "_reset_factors":
            factor_changes.reset(obj.user_id, reason=reason, by=by)
            return f"{obj.email} has no second factor any more."
        if action == "_mail":
            suppressed_addresses.clear(obj.email, by=by)
            return f"Mail is sent to {obj.email} again."
        if action in ("_disable", "_enable"):
            accounts.set_active(obj.user_id, action == "_enable", by=by, reason=reason)
            return f"{obj.email} is {'enabled' if action == '_enable' else 'disabled'}."
        accounts.set_operator(obj.user_id, action == "_operator", by=by, reason=reason)
        return f"{obj.email} is {'now an operator' if action == '_operator' else 'no longer an operator'}."
