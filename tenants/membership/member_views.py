"""Show the members of a desk, now and at a past time; change, remove and restore them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal import clock
from portal.errors import Conflict, Forbidden, Invalid
from portal.web import moments
from portal.web.access import in_person, member, on_get, on_post
from portal.web.conflicts import put_on_stored
from tenants.membership import mail_choices, member_changes, members, past_roster
from tenants.membership.forms import NewsForm, RoleForm
from tenants.membership.members import AtHand
from tenants.membership.past_roster import RestoredMember
from tenants.tenancy.context import MEMBER_ROLES, Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told, unpin_tenant

FEW: Final = 12  # members that need no search


@member(Role.ADMIN)
@on_get(query="members by name", trips=3, reads=20)
def members_page(request: TenantRequest) -> HttpResponse:
    """List members by name, because owners first would move people about when roles change: one Query for each page of
    AT_HAND, and for a search what `members.matching` costs."""
    tenant = request.tenant
    q, after = request.GET.get("q", "").strip(), request.GET.get("after", "")
    if q:
        known = AtHand(*members.page(tenant.repository, size=members.SEARCHED))
        found, more, after = members.matching(tenant.repository, q, known=known), "", ""
    else:
        known = AtHand(*members.page(tenant.repository, after=after))
        found, more = list(known.people), known.more
    people, is_all = known.people, not after and known.is_all
    owners = sum(m.role is Role.OWNER for m in people) if is_all else 0  # the rules know, too
    grantable = [role for role in MEMBER_ROLES if tenant.role.at_least(role)]
    rows = [
        {
            "id": m.id,
            "name": m.name,
            "email": m.email,
            "role": m.role,
            "is_me": m.id == tenant.user_id,
            "roles": grantable if member_changes.may_touch(tenant, m) else [],
            "is_only_owner": m.role is Role.OWNER and owners == 1,
        }
        for m in found
    ]
    page = {
        "people": rows,
        "total": len(people) if is_all else 0,
        "matching": len(found),
        "q": q,
        "has_search": not is_all or len(people) > FEW,
        "after": after,
        "more": more,
        "most": members.SEARCHED,
    }
    return render(request, "tenants/members.html", page)


@member(Role.ADMIN)
@on_post(get="member", query="member", write="audit row, member, membership", trips=6, reads=10, writes=20)
def change_role(request: TenantRequest, user: str) -> HttpResponse:
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _back_with(request, Invalid(_("Choose a role from the list.")))
    to, seen = Role(form.cleaned_data["role"]), form.cleaned_data["seen"]
    try:
        changed = member_changes.change_role(
            request.tenant, user_id=user, to=to, seen=Role(seen) if seen else None, by=actor_of(request)
        )
    except (Conflict, Forbidden, Invalid) as error:
        return _back_with(request, error)
    if user == request.tenant.user_id:
        messages.success(request, _("You are now %(role)s.") % {"role": to.with_article})
        return redirect("tickets:queue")
    messages.success(request, _("%(name)s is now %(role)s.") % {"name": changed.name, "role": to.with_article})
    return redirect("tenants:members")


@member(Role.ADMIN)
@on_get(get="member", trips=1, reads=2)
@on_post(get="member", write="agent, audit row, inbox, member, membership, saved views", trips=5, reads=3, writes=30)
def remove(request: TenantRequest, user: str) -> HttpResponse:
    """Ask first, on a page of its own, then remove, and go on to the tickets that the person leaves."""
    tenant = request.tenant
    if user == tenant.user_id:
        return redirect("tenants:leave")
    if request.method != "POST":
        return render(request, "tenants/member_remove.html", {"person": member_changes.member_to_change(tenant, user)})
    try:
        removed = member_changes.remove_member(tenant, user_id=user, by=actor_of(request))
    except (Conflict, Forbidden) as error:
        return _back_with(request, error)
    messages.success(request, _("%(name)s was removed from %(desk)s.") % {"name": removed.name, "desk": tenant.name})
    return redirect(f"{reverse('tickets:handovers')}?{urlencode({'of': removed.id})}")


@in_person
@member(Role.VIEWER)
@on_get(query="members by name", trips=1, reads=8)
@on_post(
    get="member",
    query="member",
    write="agent, audit row, inbox, member, membership, saved views",
    trips=5,
    reads=10,
    writes=25,
)
def leave(request: TenantRequest) -> HttpResponse:
    """Ask first, on a page of its own, then leave. The only owner is told what to do before."""
    tenant = request.tenant
    if request.method != "POST":
        return render(request, "tenants/leave.html", {"is_only_owner": member_changes.is_only_owner(tenant)})
    with refusal_told(request, Conflict):
        member_changes.remove_member(tenant, user_id=tenant.user_id, by=actor_of(request))
        unpin_tenant(request, tenant)
        messages.success(request, _("You have left %(desk)s.") % {"desk": tenant.name})
        return redirect("tenants:pick")
    return redirect("tenants:leave")


@in_person
@member(Role.VIEWER)
@on_get(get="member", trips=1, reads=2)
@on_post(get="member", write="member", trips=4, reads=2, writes=2)
def mail_choices_page(request: TenantRequest) -> HttpResponse:
    """Show of what the person is told by this desk, and save what they choose. The profile loads the same
    form after itself."""
    tenant = request.tenant
    form = stored = NewsForm.of(mail_choices.chosen(tenant.repository, tenant.user_id))
    if request.method == "POST":
        if "initial-digest" not in request.POST:  # cut off, or from a page of a former version
            raise Invalid(_("This change is incomplete. Reload the page and try again."))
        form = NewsForm(request.POST)
        is_stale = put_on_stored(form, stored)
        if form.is_valid():
            hour = form.cleaned_data["digest"]
            mail, notices = form.wanted("mail"), form.wanted("notice")
            mail_choices.choose(tenant.repository, tenant.user_id, mail, notices, int(hour) if hour else None)
            messages.success(request, _("Your choices for %(desk)s are saved.") % {"desk": tenant.name})
            return redirect("tenants:profile")
        return render(request, "tenants/mail_choices.html", {"form": form}, status=409 if is_stale else 422)
    return render(request, "tenants/mail_choices.html", {"form": form})


def _back_with(request: TenantRequest, error: Conflict | Forbidden | Invalid) -> HttpResponse:
    """Return to the list, which shows the members as they are now, with the sentence that says why not."""
    messages.error(request, error.message)
    return redirect("tenants:members")


_NAMED: Final = 10  # people whom a message names; the rest is counted
_NOBODY: Final = "none"  # in a form: seen as no member


@member(Role.ADMIN)
@on_get(query="audit row, member", trips=2, reads=15)
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
@on_post(
    get="member", query="audit row, member", write="audit row, member, membership, tenant", trips=9, reads=25, writes=40
)
def restore(request: TenantRequest) -> HttpResponse:
    """Ask first, on a page that says who will get which role, then restore the chosen members."""
    tenant = request.tenant
    back = reverse("tenants:past_members")
    with refusal_told(request, Invalid):
        at = moments.moment(request.POST.get("at", ""))
        back = f"{back}?{urlencode({'at': at})}"
        chosen = dict(text.partition(".")[::2] for text in request.POST.getlist("members"))
        past_roster.check(chosen)
        if "confirmed" not in request.POST:
            people = [one for one in past_roster.at(tenant, at, consistent=True) if one.id in chosen]
            return render(request, "tenants/past_members_restore.html", _asked(people) | moments.page(at))
        seen = {one: _seen(role) for one, role in chosen.items()}
        done = past_roster.restore(tenant, seen, at, by=actor_of(request))
        _tell(request, done)
        lost = any(one.person.id == tenant.user_id and not one.left and one.person.then != tenant.role for one in done)
        return redirect("tickets:queue" if lost else back)
    return redirect(back)


def _asked(people: list[past_roster.PastMember]) -> dict[str, Any]:
    changing = [one for one in people if not one.is_same and not one.hindrance]
    chosen = [(one, f"{one.id}.{one.now or _NOBODY}") for one in changing]
    return {"chosen": chosen, "others": [one for one in people if one not in changing], "total": len(people)}


def _seen(text: str) -> Role | None:
    """Return the role that the page has shown, None for no member. Raises Invalid."""
    if text != _NOBODY and text not in MEMBER_ROLES:
        raise Invalid(_("The selection is damaged. Reload the list and select the members again."))
    return None if text == _NOBODY else Role(text)


def _tell(request: TenantRequest, done: list[RestoredMember]) -> None:
    """Say who was restored, and of each other person why they were not."""
    restored = [one.person for one in done if not one.left]
    some = [
        _("%(name)s is %(role)s") % {"name": one.called, "role": one.then.with_article}
        for one in restored[:_NAMED]
        if one.then
    ]
    more = [_("%(count)s more") % {"count": len(restored) - _NAMED}] if len(restored) > _NAMED else []
    if restored:
        told = ngettext(
            "%(num)s member was restored: %(who)s.", "%(num)s members were restored: %(who)s.", len(restored)
        )
        messages.success(request, told % {"num": len(restored), "who": ", ".join(some + more)})
    else:
        messages.warning(request, _("Nobody was restored."))
    left = [one for one in done if one.left]
    for one in left[:_NAMED]:
        messages.warning(
            request, _("%(name)s was not restored. %(why)s") % {"name": one.person.called, "why": one.left}
        )
    if len(left) > _NAMED:
        messages.warning(request, _("%(count)s more were not restored.") % {"count": len(left) - _NAMED})
