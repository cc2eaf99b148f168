"""List members and pending invitations, by tenant or by user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Final

from django import forms
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import plain_text
from portal.dynamo.store import Store
from portal.errors import Invalid, NotFound
from portal.mailing.outgoing import OutgoingMail
from portal.nosql import session_store
from portal.nosql.admin import DynamoAdmin, ObjectAction
from portal.nosql.admin.options import ReasonField
from portal.nosql.admin.stale_forms import SeenForm
from portal.plain_text import amount
from portal.schema.access_patterns import cost
from portal.web import desk_prefix, locales
from tenants.admin.admin_lists import NamedColumns, TenantInput, UserInput
from tenants.impersonation import impersonating
from tenants.membership import member_changes, members
from tenants.membership.members import Member
from tenants.operators.facades import Invitation, Membership
from tenants.operators.operator_site import actor
from tenants.sign_in import accounts
from tenants.sign_in.forms import UnambiguousAddressField
from tenants.sign_in.impersonation_session import VISIT, Impersonation
from tenants.tenancy import access_middleware, tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import page_for_mail

NAME_LIMIT: Final = 60  # characters of a tenant's name in a subject
MOST: Final = 20  # owners of one desk who are told: each mail is a member of the transaction


def to_owners(
    tenant: TenantContext, impersonation: Impersonation, reason: str, *, request: HttpRequest
) -> list[OutgoingMail]:
    """Return a mail for each owner; `request` is the operator's. Costs one consistent Query."""
    desk = plain_text.named(tenant.name, limit=NAME_LIMIT)
    with desk_prefix.addresses_of(tenant.slug):
        url = page_for_mail(reverse("tenants:platform_access"), request)
    names = {
        who: plain_text.named(name, limit=NAME_LIMIT)
        for who, name in (("operator", impersonation.operator_name), ("member", impersonation.member_name))
    }
    context = {"tenant_name": desk, "acting": impersonation, "names": names, "reason": reason, "url": url}

    def mail(owner: Member) -> OutgoingMail:
        with locales.shown_in(owner.locale_at(tenant)):
            return OutgoingMail(
                to=owner.email,
                subject=_("Support acts as a member of %(desk)s") % {"desk": desk},
                text=render_to_string("tenants/mail/impersonation.txt", context),
                kind="impersonation",
                about=f"access/{impersonation.visit}",
                tenant_id=tenant.tenant_id,
                queues=tenant.queues,
            )

    return [mail(owner) for owner in members.owners_of(tenant.repository)[:MOST]]


class MembershipForm(SeenForm):
    why = ReasonField(label="Why", help_text="The desk's owners get it by mail, and find it in their audit trail.")


class NewMembershipForm(MembershipForm):
    who = UnambiguousAddressField(label="User", help_text="The e-mail address of an account that exists.")
    where = forms.SlugField(label="Tenant", help_text="The slug of the tenant.")


@admin.register(Membership)
class MembershipAdmin(NamedColumns, DynamoAdmin):
    get_costs = cost(
        get="address, member, slug",
        query="audit rows by object, member, membership, sessions by person, tenant by name",
        trips=3,
        reads=10,
    )
    post_costs = cost(
        get="address, member, slug",
        query="invitation, member, sessions by person",
        write="agent, audit row, inbox, member, membership, saved views, tenant",
        trips=10,
        reads=20,
        writes=40,
    )
    may_add = may_change = may_delete = True
    list_display = ("person", "role", "tenant", "created_at")
    list_filter = (TenantInput, UserInput, "role")
    object_actions: ClassVar[tuple[ObjectAction, ...]] = (
        ObjectAction("_act_reading", "Act as this member", "See the desk as they do. Nothing can be changed.", True),
        ObjectAction(
            "_act_writing",
            "Act as this member and change tickets",
            "See the desk as they do, and change its tickets in their place.",
            needs_reason=True,
            asks=True,
        ),
    )

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        return ("who", "where", "role", "why") if obj is None else ("account", "role", "why", "tenant", "created_at")

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Any:
        return ("account", "tenant", "created_at") if obj else ()

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **kwargs, form=MembershipForm if obj else NewMembershipForm)

    def add(self, request: Any, obj: Any, form: Any) -> None:
        user = accounts.find_by_email(form.cleaned_data["who"])
        if user is None:
            raise Invalid("There is no account with this address.", field="who")
        try:
            tenant = tenant_directory.find(form.cleaned_data["where"])
        except NotFound as error:
            raise Invalid(error.message, field="where") from error
        role, reason = Role(obj.role), form.cleaned_data["why"]
        member_changes.add(user=user, tenant=tenant, role=role, by=actor(request), reason=reason)
        obj.tenant_id, obj.user_id, obj.pk = tenant.tenant_id, user.id, f"{tenant.tenant_id}/{user.id}"

    def change(self, request: Any, obj: Any, form: Any) -> None:
        member_changes.set_role(
            user_id=obj.user_id,
            tenant_id=obj.tenant_id,
            role=Role(obj.role),
            seen=Role(form.initial["role"]),
            by=actor(request),
            reason=form.cleaned_data["why"],
        )

    def offered_actions(self, request: Any, obj: Any) -> list[ObjectAction]:
        """Offer to change tickets in the place of somebody who may."""
        reading, writing = self.object_actions
        return [reading, writing] if Role(obj.role).at_least(Role.AGENT) else [reading]

    def follows(self, request: Any, obj: Any, action: str) -> Iterable[str]:
        if action == "_act_writing":
            yield "Your changes to tickets are real, and name you and the member."
        mailed = " They get a mail with the reason at once." if settings.IMPERSONATION_MAILS else ""
        yield f"The desk's owners see in their audit trail when it began and ended, and why.{mailed}"
        yield f"It ends after {settings.IMPERSONATION_MINUTES} minutes, or when you stop. You stay signed in here."

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        access_middleware.end_acting(request, why=gettext_noop("began to act as somebody else"))
        begun = impersonating.begin(
            obj.tenant_id,
            obj.user_id,
            operator=request.user,
            operator_session=request.session.session_key,
            reason=reason,
            may_write=action == "_act_writing",
            write=partial(to_owners, request=request),
        )
        request.acting_cookie, request.acting_slug = begun.cookie, begun.tenant.slug
        request.session[VISIT] = asdict(begun.impersonation)
        return f"You act as {begun.impersonation.member_name} now."

    def performed_url(self, request: Any) -> str:
        with desk_prefix.addresses_of(request.acting_slug):
            return reverse("tickets:queue")

    def remove(self, request: Any, obj: Any) -> None:
        member_changes.remove(user_id=obj.user_id, tenant_id=obj.tenant_id, by=actor(request))

    def consequences(self, obj: Any) -> Iterable[str]:
        yield f"{obj.name} is out of the tenant at their next click, in every browser."
        yield "Their account stays, and so do their other memberships."
        yield "Tickets that are assigned to them stay assigned to them; what they wrote stays under their name."
        here = [item for item in session_store.of_user(obj.user_id) if item.tenant_id == obj.tenant_id]
        if here:
            yield f"They are in it now in {amount(len(here), 'browser')}."
        if obj.role == Role.OWNER:
            others = members.owners_of(Store("tenant", obj.tenant_id), but=obj.user_id)
            names = ", ".join(f"{owner.name} ({owner.email})" for owner in others)
            if obj.is_hidden and others:
                names = amount(len(others), "other")
            yield f"Owners are then: {names}." if others else member_changes.ONLY_OWNER


@admin.register(Invitation)
class InvitationAdmin(NamedColumns, DynamoAdmin):
    get_costs = cost(
        get="invitation, slug", query="audit rows by object, invitation, tenant by name", trips=2, reads=10
    )
    post_costs = cost()
    list_display = ("email", "role", "invited_by_name", "sent_at", "expires_at")
    list_filter = (TenantInput, "role")
    fields = ("email", "role", "invited_by_name", "created_at", "sent_at", "expires_at", "tenant")
