"""Show the settings of a desk: its name and defaults, signing in, usage, and closing. Owners change them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from math import floor
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid
from portal.load import tenant_limiter, usage
from portal.load.usage import UsedMinute
from portal.web import desk_prefix, locales
from portal.web.access import member, on_get, on_post, open_while_closing
from portal.web.conflicts import put_on_stored, told_in
from tenants.lifecycle import closing_mails, desk_closing, desk_settings
from tenants.lifecycle.forms import CloseForm, DefaultsForm, DeskForm, SignInDemandForm
from tenants.membership import invitations, members
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import LANGUAGE, Role, TenantContext
from tenants.tenancy.request import TenantRequest, actor_of, locale_of, refusal_told


@member(Role.OWNER)
@on_get(query="members by name", trips=1, reads=14)
@on_post(
    query="auditor, member, members by name",
    write="audit row, membership, slug, tenant, tenant by name",
    trips=9,
    reads=10,
    writes=40,
)
def settings_page(request: TenantRequest) -> HttpResponse:
    tenant, stored = request.tenant, _desk_form(request.tenant)
    form = DeskForm(request.POST) if request.method == "POST" else stored

    def save() -> None:
        desk_settings.rename(tenant, **form.cleaned_data, by=actor_of(request))
        desk_prefix.use(form.cleaned_data["slug"])

    is_stale = form.is_bound and put_on_stored(form, stored)
    return _saved(request, form, save, "tenants:settings") or _settings(
        request, form, _defaults_form(tenant), is_stale=is_stale
    )


@member(Role.OWNER)
@on_post(query="members by name", write="audit row, membership, tenant", trips=5, reads=10, writes=15)
def change_defaults(request: TenantRequest) -> HttpResponse:
    """Store what the second form of the settings holds."""
    tenant, form = request.tenant, DefaultsForm(request.POST)

    def save() -> None:
        desk_settings.change_defaults(tenant, values=form.cleaned_data, by=actor_of(request))
        locales.use(locale_of(request, desk_language=form.cleaned_data.get(LANGUAGE)))

    is_stale = put_on_stored(form, _defaults_form(tenant))
    return _saved(request, form, save, "tenants:settings") or _settings(
        request, _desk_form(tenant), form, is_stale=is_stale
    )


def _saved(request: TenantRequest, form: Form, save: Callable[[], object], page: str) -> HttpResponse | None:
    """Save a form that was sent, and lead back to its page; None where there is nothing to save or it was refused."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        save()
    except (Invalid, Conflict) as error:
        form.add_error(error.field, error.message)
        return None
    messages.success(request, _("Settings saved."))
    return redirect(page)


def _desk_form(tenant: TenantContext) -> DeskForm:
    return DeskForm(initial={"name": tenant.name, "slug": tenant.slug})


def _defaults_form(tenant: TenantContext) -> DefaultsForm:
    return DefaultsForm(
        initial={
            default.name: desk_settings.default_value(tenant, default.name)
            for default in desk_settings.declared_defaults()
        }
    )


def _settings(request: TenantRequest, form: DeskForm, defaults_form: DefaultsForm, *, is_stale: bool) -> HttpResponse:
    tenant = request.tenant
    reads: list[Callable[[], Any]] = [
        lambda: tenant_directory.get(tenant.tenant_id),
        lambda: members.at_hand(tenant),
    ]
    stored, known = fan_out(reads)
    owners = [one for one in known.people if one.role is Role.OWNER]
    page: dict[str, Any] = {"form": form, "defaults_form": defaults_form, "owners": owners, "stored": stored}
    page["has_more_members"] = not known.is_all
    status = 409 if is_stale else 422 if form.is_bound or defaults_form.is_bound else 200
    return render(request, "tenants/settings.html", page, status=status)


FIRST: Final = 10
ACCOUNTS: Final = 100  # one BatchGetItem


@member(Role.OWNER)
@on_get(query="members by name", trips=2, reads=60, room="the accounts of a page of 100 members")
@on_post(
    query="members by name",
    write="audit row, membership, tenant",
    trips=6,
    reads=60,
    writes=15,
    room="the accounts of a page of 100 members",
)
def sign_in_page(request: TenantRequest) -> HttpResponse:
    """Show whether a second factor is demanded, and who has none: one Query of members, then one BatchGetItem of their
    accounts. Since each account costs half a unit, the first page has FIRST members, and those behind it ACCOUNTS."""
    tenant = request.tenant
    stored = SignInDemandForm(initial={"demanded": tenant.needs_second_factor})
    form = SignInDemandForm(request.POST) if request.method == "POST" else stored
    is_stale = form.is_bound and put_on_stored(form, stored)

    def save() -> None:
        desk_settings.demand_second_factor(tenant, demanded=form.cleaned_data["demanded"], by=actor_of(request))

    if response := _saved(request, form, save, "tenants:settings_sign_in"):
        return response
    after = request.GET.get("after", "")
    people, more = members.page(tenant.repository, after=after, size=ACCOUNTS if after else FIRST)
    known = accounts.find_all([m.id for m in people])
    without = [m for m in people if m.id not in known or not known[m.id].second_factors]
    page = {"form": form, "without": without, "total": len(people), "after": after, "more": more}
    status = 409 if is_stale else 422 if form.errors else 200
    return render(request, "tenants/settings_sign_in.html", page, status=status)


USAGE_MINUTES: Final = 15
COUNTED: Final = 500  # members of one request that counts on, some 12 units


@dataclass(frozen=True)
class MinuteLine:
    """One minute of the page. `share` is how much of its rate the desk used, in percent, None where it was little."""

    begins: datetime
    is_told: bool
    requests: int = 0
    units: int = 0
    refused: int = 0
    share: int | None = None

    @property
    def width(self) -> int:
        """Return the length of the bar in percent."""
        return min(100, max(1, self.share or 0))


def _usage(tenant: TenantContext, told: list[UsedMinute], *, members: int, invited: int, most: int | None,
         now: datetime) -> dict[str, Any]:  # fmt: skip
    """Return the template's context. `told` are the rows of the last MINUTES, `most` the limit of members if any."""
    rate = tenant.units_per_second
    rows = {one.begins: one for one in told}
    this = now.replace(second=0, microsecond=0)
    begins = [this - timedelta(minutes=back) for back in range(USAGE_MINUTES)]
    lines = [_line(minute, rows.get(minute), rate) for minute in begins]
    return {
        "lines": lines,
        "minutes": USAGE_MINUTES,
        "refused": sum(line.refused for line in lines),
        "rate": locales.current().with_marks(f"{rate:g}") if rate else "",
        "per_minute": locales.current().number(round(rate * usage.SECONDS)),
        "burst": locales.current().number(round(rate * tenant_limiter.BURST_SECONDS)),
        "change_units": tenant_limiter.CHANGE_UNITS,
        "little": _("%(percent)s%%") % {"percent": round(100 * usage.TOLD_SHARE)},
        "members": members,
        "invited": invited,
        "most": most,
        "at_work": tenant_limiter.requests.taken(tenant.tenant_id),
        "at_work_most": tenant_limiter.requests.most,
        "heavy": tenant_limiter.heavy.taken(tenant.tenant_id),
        "heavy_most": tenant_limiter.heavy.most,
    }


def _line(begins: datetime, told: UsedMinute | None, rate: float) -> MinuteLine:
    if told is None:
        return MinuteLine(begins, False)
    share = usage.share(told.units, per_second=rate)
    percent = None if share is None else floor(share * 100 + 1e-9)
    return MinuteLine(begins, True, told.requests, told.units, told.refused, percent)


@member(Role.ADMIN)
@on_get(query="invitation, members by name, usage", trips=1, reads=25, room="500 members of a larger desk")
def usage_page(request: TenantRequest) -> HttpResponse:
    """Show what the tenant uses, at the cost of three Queries and a BatchGetItem at the same time.

    It counts the members at hand. In a larger desk the page asks again, COUNTED at a time, until all are counted:
    `after` is where to go on, `counted` how many there were before.
    """
    tenant, now = request.tenant, clock.now()
    after, before = request.GET.get("after", ""), request.GET.get("counted", "")
    counted = (plain_text.whole_number(before, digits=7) or 0) if after else 0
    size = COUNTED if after else members.AT_HAND
    reads: list[Callable[[], Any]] = [
        lambda: usage.latest(tenant.repository, minutes=USAGE_MINUTES, now=now),
        lambda: members.page(tenant.repository, after=after, size=size),
        lambda: invitations.pending(tenant.repository),
        lambda: tenant_directory.get(tenant.tenant_id),
    ]
    told, (people, more), invites, stored = fan_out(reads)
    invited = sum(not invitations.is_expired(invite) for invite in invites)
    page = _usage(
        tenant,
        told,
        members=counted + len(people),
        invited=invited,
        most=int(stored.member_limit or 0) or None,
        now=now,
    )
    return render(
        request,
        "tenants/usage.html",
        page | {"more": more, "plan": stored.plan, "own": stored.request_rate is not None},
    )


@member(Role.OWNER)
@on_get()
@on_post(
    query="member", write="audit row, closing tenant, membership, tenant, tenant by name", trips=6, reads=10, writes=25
)
def close(request: TenantRequest) -> HttpResponse:
    """Ask for the desk's name, then close it. Where it is closing already, the page offers the undo."""
    tenant = request.tenant
    form = CloseForm(request.POST or None, name=tenant.name)
    if request.method == "POST" and form.is_valid():
        with told_in(form):
            desk_closing.close(
                tenant.tenant_id,
                by=actor_of(request),
                write=partial(closing_mails.to_owners, request=request),
                reason=form.cleaned_data["reason"],
                at_work=tenant,
            )
            messages.success(
                request,
                _("%(desk)s is closed. Its owners have got a mail that says until when.") % {"desk": tenant.name},
            )
            return redirect("tenants:close")
    page = {"form": form, "days": settings.CLOSING_DAYS}
    return render(request, "tenants/close.html", page, status=422 if form.is_bound else 200)


@open_while_closing
@member(Role.OWNER)
@on_post(
    query="member", write="audit row, closing tenant, membership, tenant, tenant by name", trips=6, reads=10, writes=25
)
def reopen(request: TenantRequest) -> HttpResponse:
    with refusal_told(request, Conflict):
        desk_closing.reopen(
            request.tenant.tenant_id,
            by=actor_of(request),
            write=partial(closing_mails.to_owners, request=request),
            at_work=request.tenant,
        )
        messages.success(
            request, _("%(desk)s will not be deleted. Everybody can work as before.") % {"desk": request.tenant.name}
        )
        return redirect("tenants:settings")
    return redirect("tenants:close")
