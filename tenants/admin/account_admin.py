"""Find accounts by e-mail or id, create and disable them, end sessions, have people choose a new password.

No operator sets a password: who knows it could sign in as its owner, and the trails would name the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html_join

from portal import clock
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Forbidden, NotFound
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.nosql import session_store
from portal.nosql.admin import DynamoAdmin, ObjectAction
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from tenants.admin.admin_lists import NamedColumns, UserInput, with_id
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import mails, members
from tenants.operators.facades import Account, Session
from tenants.operators.operator_site import actor
from tenants.sign_in import accounts, factors, session_lifecycle, suppressed_addresses
from tenants.sign_in.accounts import User
from tenants.tenancy.request import absolute_url

_ROWS: Final = 20  # of a transaction: a person may be in more desks than one can hold


def send(user_id: str, *, write: Callable[[User], OutgoingMail], reason: str, by: Actor) -> None:
    """Mail the person a link that works once; `write` writes the mail.

    The platform's trail and that of each of the person's desks get a row first. Raises NotFound, Conflict for an
    account that may not sign in, and Forbidden for an operator's: who has it could do everything here under another
    name.
    """
    user = accounts.find_by_id(user_id)
    if user is None:
        raise NotFound("This account no longer exists.")
    if user.is_operator:
        raise Forbidden("Operators choose a new password themselves: nobody sends them a link.")
    if not user.is_active:
        raise Conflict("This account may not sign in. Enable it first.")
    desks = [recording.PLATFORM, *(membership.tenant_id for membership in members.memberships_of(user.id))]
    entries = [
        AuditEntry(tenant_id, AuditAction.USER_RESET_LINK_SENT, by, "user", user.id, user.email, {}, {"reason": reason})
        for tenant_id in desks
    ]
    for start in range(_ROWS, len(entries), _ROWS):
        recording.commit(Transaction(), entries[start : start + _ROWS])
    transaction = Transaction()
    later = outgoing.join(transaction, [write(user)])
    recording.commit(transaction, entries[:_ROWS])
    outgoing.send_all(later)


@admin.register(Account)
class AccountAdmin(DynamoAdmin):
    get_costs = cost(
        get="address, suppressed address",
        query="audit rows by object, disabled accounts, membership",
        trips=5,
        reads=10,
    )
    post_costs = cost(
        get="suppressed address",
        query="membership, second factor, sessions by person",
        write="account, address, audit row, second factor, session, suppressed address",
        trips=10,
        reads=12,
        writes=40,
    )
    may_add = may_change = True
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
        ObjectAction(
            "_reset_link",
            "Mail a link for a new password",
            "The person gets a link that works once, with your reason. Their desks' audit trails say that you sent it.",
            needs_reason=True,
        ),
    )

    @admin.display(description="name")
    def title(self, obj: Any) -> Any:
        return with_id(obj.name, obj.user_id)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        if obj is None:
            return ("email", "name", "is_operator")
        return (
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

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Any:
        return self.get_fields(request, obj) if obj else ()

    @admin.display(description="mail")
    def mail(self, obj: Any) -> str:
        """Say whether mail is sent to this address."""
        known = suppressed_addresses.of([obj.address]).get(obj.address)
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
            "_mail": bool(suppressed_addresses.of([obj.address])),
            "_reset_link": obj.is_active and not obj.is_operator,
        }
        return [action for action in self.object_actions if offered[action.name]]

    def add(self, request: Any, obj: Any, form: Any) -> None:
        """Create the account without a password; its owner chooses one by the link in a mail."""
        user = accounts.create(
            email=obj.email, name=obj.name, password=None, is_operator=obj.is_operator, by=actor(request)
        )
        obj.user_id, obj.email = user.id, user.email
        mails.send_password_reset(user.email, _reset_link(request))

    def follows(self, request: Any, obj: Any, action: str) -> Iterable[str]:
        """List the sessions that end, where they do."""
        if action == "_reset_factors":
            yield "The person gets a mail about it, with the reason."
        if action not in ("_sign_out", "_disable", "_reset_factors"):
            return
        sessions = session_store.of_user(obj.pk)
        if obj.is_hidden:
            yield f"It ends {amount(len(sessions), 'session')}."
            return
        for item in sessions:
            origin = f" from {item.address}" if item.address else ""
            since = clock.parse(item.started_at or "")
            yield f"{session_lifecycle.browser_of(item.agent or '')}{origin}, signed in {since:%-d %b %Y, %H:%M} UTC"

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        by = actor(request)
        if action == "_sign_out":
            accounts.sign_out_everywhere(obj.user_id, by=by)
            return f"{obj} is signed out on every device."
        if action == "_reset_factors":
            factors.reset(obj.user_id, reason=reason, by=by)
            return f"{obj} has no second factor any more."
        if action == "_mail":
            suppressed_addresses.clear(obj.address, by=by)
            return f"Mail is sent to {obj} again."
        if action == "_reset_link":
            write = partial(mails.password_link, link=_reset_link(request), reason=reason)
            send(obj.user_id, write=write, reason=reason, by=by)
            return f"The link is on its way to {obj}."
        if action in ("_disable", "_enable"):
            accounts.set_active(obj.user_id, action == "_enable", by=by, reason=reason)
            return f"{obj} is {'enabled' if action == '_enable' else 'disabled'}."
        accounts.set_operator(obj.user_id, action == "_operator", by=by, reason=reason)
        return f"{obj} is {'now an operator' if action == '_operator' else 'no longer an operator'}."


def _reset_link(request: Any) -> str:
    return absolute_url(request, reverse("tenants:password_reset_confirm", args=["UID", "TOKEN"]))


@admin.register(Session)
class SessionAdmin(NamedColumns, DynamoAdmin):
    get_costs = cost(get="address", query="audit rows by object, membership, sessions by person", trips=4, reads=10)
    post_costs = cost(query="membership", write="audit row, session", trips=10, reads=10, writes=36)
    may_delete = True
    list_display = ("browser", "address", "tenant", "started_at", "until")
    list_filter = (UserInput,)
    fields = ("account", "browser", "agent", "address", "tenant", "started_at", "until")

    @admin.display(description="browser")
    def browser(self, obj: Any) -> Any:
        return with_id(session_lifecycle.browser_of(obj.agent or ""), obj.session_key)

    def remove(self, request: Any, obj: Any) -> None:
        session_lifecycle.end(obj.user_id, session_id=obj.pk, by=actor(request))

    def consequences(self, obj: Any) -> Iterable[str]:
        origin = f" from {obj.address}" if obj.address else ""
        yield f"This browser, {session_lifecycle.browser_of(obj.agent or '')}{origin}, is signed out."
        yield "It counts at its next click. What is typed into an open form is offered again after signing in."
        yield "The person's other sessions go on, and whoever knows the password can sign in again."
