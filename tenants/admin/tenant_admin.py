"""List tenants by slug, create them with their first owner, change, suspend and resume them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from portal import clock
from portal.dynamo.placement import POOL
from portal.errors import Conflict, Invalid
from portal.load import tenant_limiter
from portal.mailing import outgoing
from portal.nosql.admin import DynamoAdmin, Notice, ObjectAction
from portal.nosql.admin.stale_forms import SeenForm
from portal.plain_text import amount
from tenants.admin.admin_lists import NameInput, first_few, with_id
from tenants.lifecycle import closing_mails, desk_closing, tenant_lifecycle
from tenants.lifecycle.tenant_lifecycle import TenantLimits
from tenants.membership import invitations, mails
from tenants.operators.facades import Tenant
from tenants.operators.operator_site import OperatorSite, actor
from tenants.sign_in.forms import UnambiguousAddressField
from tenants.tenancy import context, placements, tenant_directory
from tenants.tenancy.stored import TenantStatus

NOTICED = 5  # suspended tenants that the front page names


class NewTenantForm(SeenForm):
    owner = UnambiguousAddressField(
        label="First owner", help_text="The invitation goes to this e-mail address, with or without an account."
    )
    placement = forms.ChoiceField(
        choices=lambda: [("", "as its plan asks"), *((str(p), str(p)) for p in (POOL, *placements.beside_the_pool()))],
        required=False,
        help_text="Where its content lies: in the tables of all, in tables of its own here, or at a site.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["slug"].help_text = "Empty: it is made from the name. Owners can change it."

    def clean_slug(self) -> str:
        """Refuse a slug together with what else is wrong."""
        slug: str = self.cleaned_data["slug"]
        try:
            return tenant_directory.valid_slug(slug) if slug else ""
        except Invalid as error:
            raise forms.ValidationError(error.message) from error


@admin.register(Tenant)
class TenantAdmin(DynamoAdmin):
    may_add = may_change = True
    list_display = ("slug", "title", "status", "created_at")
    list_filter = ("status", "placement", NameInput)
    search_fields = ("^slug",)
    search_help_text = "The beginning of a slug, or else a part of a name."
    search_rows_by = "name"
    ordering = ("slug",)
    object_actions: ClassVar[tuple[ObjectAction, ...]] = (
        ObjectAction(
            "_suspend",
            "Suspend",
            "From their next click on, its members see only a page that says so. Nothing is deleted.",
            needs_reason=True,
        ),
        ObjectAction("_resume", "Resume", "Its members can work again at once."),
        ObjectAction(
            "_close",
            "Close",
            "It becomes read-only at once, and may be deleted once the grace is over. Until then it can be undone.",
            needs_reason=True,
        ),
        ObjectAction(
            "_invite",
            "Send the owner's invitation again",
            "The link that was sent before stops working.",
        ),
        ObjectAction("_reopen", "Undo the closing", "It will not be deleted, and is again what it was before."),
    )

    @admin.display(description="name")
    def title(self, obj: Any) -> Any:
        return with_id(obj.name, obj.tenant_id)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        if obj is None:
            return ("name", "slug", "owner", "plan", "placement", "member_limit", "shards")
        limits = ("plan", "member_limit", "request_rate", "may_ask_for", "shards", "lies")
        state = ("status", "closes_at") if obj.closes_at else ("status",)
        return ("name", "slug", *state, "deletion", "first_owner", "people", *limits, "created_at", "tenant_id")

    def get_readonly_fields(self, request: Any, obj: Any = None) -> Any:
        changeable = ("plan", "member_limit", "request_rate")
        return [name for name in self.get_fields(request, obj) if name not in changeable] if obj else ()

    @admin.display(description="first owner")
    def first_owner(self, obj: Any) -> str:
        """Say whether the owner who was invited when the desk was made has come: one Query."""
        invite = invitations.of_first_owner(context.for_system(tenant_directory.get(obj.tenant_id)))
        if invite is None:
            return "No invitation waits."
        if invitations.is_expired(invite):
            return f"Invited, has not come, and the invitation expired on {clock.parse(invite.expires_at):%-d %B %Y}."
        return (
            f"Invited on {clock.parse(invite.sent_at):%-d %B %Y}, has not come yet. Nobody else gets in by themselves."
        )

    @admin.display(description="members")
    def people(self, obj: Any) -> Any:
        url = reverse("admin:tenants_membership_changelist")
        return format_html('<a href="{}?tenant_id={}">Its members</a> (open one to act as them)', url, obj.tenant_id)

    @admin.display(description="deletion")
    def deletion(self, obj: Any) -> Any:
        """Lead to the page that says what it has, and orders its purge once it is closed."""
        return format_html('<a href="{}?tenant={}">Its deletion</a>', reverse("admin:deletions"), obj.slug)

    @admin.display(description="placement")
    def lies(self, obj: Any) -> Any:
        """Say where its content lies, where an old copy is kept, and lead to the page that moves it."""
        copy = f"; an old copy: {obj.former_placement}" if obj.former_placement else ""
        url = reverse("admin:places")
        return format_html('{}{}; <a href="{}?tenant={}">move it</a>', obj.placement or POOL, copy, url, obj.slug)

    @admin.display(description="may ask for")
    def may_ask_for(self, obj: Any) -> str:
        """Say what counts now, and each plan's rate."""
        rate = tenant_limiter.of(obj.plan, obj.request_rate)
        source = "of its own" if obj.request_rate is not None else f"by its plan, {obj.plan}"
        now = f"{rate:g} units a second, {source}" if rate else "as much as it likes"
        plans = ", ".join(f"{plan} {units:g}" for plan, units in tenant_limiter.by_plan().items())
        return f"{now}. Plans: {plans}." if plans else f"{now}."

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **kwargs, **({} if obj else {"form": NewTenantForm}))

    def offered_actions(self, request: Any, obj: Any) -> list[ObjectAction]:
        suspend, resume, close, invite, reopen, *_ = self.object_actions
        offered = {
            TenantStatus.ACTIVE: [suspend, close, *([invite] if _waits_for_owner(obj) else [])],
            TenantStatus.SUSPENDED: [resume, close],
            TenantStatus.CLOSING: [reopen],
        }
        return offered.get(obj.status, [])

    def add(self, request: Any, obj: Any, form: Any) -> None:
        try:
            invited = invitations.FirstOwner(form.cleaned_data["owner"], partial(mails.by_provider, request))
        except Invalid as error:
            raise Invalid(error.message, field="owner") from error
        tenant = tenant_lifecycle.create(
            name=obj.name,
            slug=obj.slug,
            invited=invited,
            shards=obj.shards,
            plan=obj.plan,
            member_limit=obj.member_limit,
            placement=placements.chosen(obj.placement) if obj.placement else None,
            by=actor(request),
        )
        obj.tenant_id, obj.slug = tenant.tenant_id, tenant.slug

    def change(self, request: Any, obj: Any, form: Any) -> None:
        seen = form.initial
        tenant_lifecycle.change_limits(
            obj.tenant_id,
            TenantLimits(obj.plan, obj.member_limit, obj.request_rate),
            seen=TenantLimits(seen["plan"], seen["member_limit"], seen["request_rate"]),
            by=actor(request),
        )

    def follows(self, request: Any, obj: Any, action: str) -> Iterable[str]:
        if action == "_close":
            days = settings.CLOSING_DAYS
            until = clock.now() + timedelta(days=days)
            yield f"It may be deleted from {until:%-d %B %Y, %H:%M} UTC on: the grace is {amount(days, 'day')}."
            yield "Its owners get a mail with the reason. They can read everything, and undo the closing."

    def perform(self, request: Any, obj: Any, action: str, *, reason: str) -> str:
        write = partial(closing_mails.to_owners, request=request)
        if action == "_close":
            until = desk_closing.close(obj.tenant_id, by=actor(request), write=write, reason=reason)
            return f"{obj.name} is closed, and may be deleted from {until:%-d %B %Y, %H:%M} UTC on."
        if action == "_reopen":
            status = desk_closing.reopen(obj.tenant_id, by=actor(request), write=write)
            return f"{obj.name} is {status} again."
        if action == "_invite":
            tenant = context.for_system(tenant_directory.get(obj.tenant_id))
            invite = invitations.of_first_owner(tenant)
            if invite is None:
                raise Conflict("No invitation of an owner waits any more.")
            again = mails.by_provider(request, tenant)
            sent = invitations.resend(tenant, invite_id=invite.invite_id, by=actor(request), write=again)
            outgoing.send_all(sent.mails)
            return "The invitation was sent again." if not sent.unreached else sent.unreached
        switch = tenant_lifecycle.suspend if action == "_suspend" else tenant_lifecycle.resume
        switch(obj.tenant_id, by=actor(request), reason=reason)
        return f"{obj.name} is {'suspended' if action == '_suspend' else 'active again'}."


def _waits_for_owner(obj: Any) -> bool:
    return invitations.of_first_owner(context.for_system(tenant_directory.get(obj.tenant_id))) is not None


@OperatorSite.watches
def closing_tenants() -> list[Notice]:
    """Name the first tenants that are closing: one Query of their own partition."""
    more = Notice(29, "More tenants are closing.", _list_url(TenantStatus.CLOSING), "info")
    closing = tenant_directory.closing_tenants(NOTICED + 1)
    return first_few(closing, lambda item: _notice(28, _closing(item), item), most=NOTICED, more=more)


def _closing(item: Any) -> str:
    if not item.closes_at or item.status == TenantStatus.PURGING:
        return f"{item.title} is being deleted."
    if clock.parse(item.closes_at) <= clock.now():
        return f"{item.title} is closed, and its grace is over."
    return f"{item.title} is closed, and may be deleted from {clock.parse(item.closes_at):%-d %B %Y} on."


@OperatorSite.watches
def suspended_tenants() -> list[Notice]:
    """Name the first suspended tenants: one Query of their own partition."""
    more = Notice(31, "More tenants are suspended.", _list_url(TenantStatus.SUSPENDED), "info")
    suspended = tenant_directory.suspended_tenants(NOTICED + 1)
    return first_few(suspended, lambda item: _notice(30, f"{item.title} is suspended.", item), most=NOTICED, more=more)


def _notice(order: int, text: str, item: Any) -> Notice:
    return Notice(order, text, reverse("admin:tenants_tenant_change", args=[item.tenant_id]), "info")


def _list_url(status: TenantStatus) -> str:
    return f"{reverse('admin:tenants_tenant_changelist')}?status__exact={status}"
