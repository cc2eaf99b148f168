"""The pages of who was a member at a time, and of restoring them. Rules are in past_roster.py."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from portal import clock
from portal.errors import Invalid
from portal.plain_text import amount
from portal.web import moments
from portal.web.access import member
from tenants.past_members import past_roster
from tenants.past_members.past_roster import RestoredMember
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role

_NAMED: Final = 10  # people whom a message names; the rest is counted
_NOBODY: Final = "none"  # in a form: seen as no member


@member(Role.ADMIN)
@require_safe
def past_members(request: TenantRequest) -> HttpResponse:
    """Show who was a member at a moment beside who is one today."""
    problem, at, people = "", clock.stamp(), []
    asked = request.GET.get("at", "")
    try:
        at = moments.moment(asked)
        people = past_roster.at(request.tenant, at) if asked else []
    except Invalid as error:
        problem = error.message
    asks = bool(problem) or not asked
    page: dict[str, Any] = {"asks": asks, "problem": problem, "people": people, **moments.page(at)}
    page["can_restore"] = any(not one.is_same and not one.hindrance for one in people)
    return render(request, "tenants/past_members.html", page, status=400 if problem else 200)


@member(Role.ADMIN)
@require_POST
def restore(request: TenantRequest) -> HttpResponse:
    """Ask first, on a page that says who will get which role, then restore the chosen members."""
    tenant = request.tenant
    back = reverse("tenants:past_members")
    try:
        at = moments.moment(request.POST.get("at", ""))
        back = f"{back}?{urlencode({'at': at})}"
        chosen = dict(text.partition(".")[::2] for text in request.POST.getlist("members"))
        past_roster.check(chosen)
        if "confirmed" not in request.POST:
            people = [one for one in past_roster.at(tenant, at, consistent=True) if one.id in chosen]
            return render(request, "tenants/past_members_restore.html", _asked(people) | moments.page(at))
        seen = {one: _seen(role) for one, role in chosen.items()}
        done = past_roster.restore(tenant, seen, at, by=actor_of(request))
    except Invalid as error:
        messages.error(request, error.message)
        return redirect(back)
    _tell(request, done)
    lost = any(one.person.id == tenant.user_id and not one.left and one.person.then != tenant.role for one in done)
    return redirect("tickets:queue" if lost else back)


def _asked(people: list[past_roster.PastMember]) -> dict[str, Any]:
    changing = [one for one in people if not one.is_same and not one.hindrance]
    chosen = [(one, f"{one.id}.{one.now or _NOBODY}") for one in changing]
    return {"chosen": chosen, "others": [one for one in people if one not in changing], "total": len(people)}


def _seen(text: str) -> Role | None:
    """Return the role that the page has shown, None for no member. Raises Invalid."""
    if text != _NOBODY and text not in list(Role):
        raise Invalid("The selection is damaged. Reload the list and select the members again.")
    return None if text == _NOBODY else Role(text)


def _tell(request: TenantRequest, done: list[RestoredMember]) -> None:
    """Say who was restored, and of each other person why they were not."""
    restored = [one.person for one in done if not one.left]
    some = [f"{one.called} is {one.then.with_article}" for one in restored[:_NAMED] if one.then]
    more = [f"{len(restored) - _NAMED} more"] if len(restored) > _NAMED else []
    if restored:
        many = amount(len(restored), "member was", "members were")
        messages.success(request, f"{many} restored: {', '.join(some + more)}.")
    else:
        messages.warning(request, "Nobody was restored.")
    left = [one for one in done if one.left]
    for one in left[:_NAMED]:
        messages.warning(request, f"{one.person.called} was not restored. {one.left}")
    if len(left) > _NAMED:
        messages.warning(request, f"{len(left) - _NAMED} more were not restored.")
