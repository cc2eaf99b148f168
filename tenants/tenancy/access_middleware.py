"""Check each request against what its view declares, and against its tenant.

A page of a desk is for members of the request's tenant alone. The desk's name in the address must be that tenant's,
and an unsafe request must carry the mark of a page that was made for this person in this tenant. Neither is a source
of keys: whatever they say, a view gets that tenant's data or none.

An operator who acts as a member reads what the member reads. Where that was chosen, tickets may be changed too. What
concerns the person or the desk itself (the account, members, keys, settings) is refused whatever was chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from portal.web.access import SAFE, Access, does_lead_out, is_in_person, is_open_while_closing
from portal.web.stash import PAGE_MARK, Stash
from tenants.sign_in.accounts import User
from tenants.sign_in.impersonation_session import Impersonation
from tenants.tenancy import page_mark, refusal_views
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import note_let_in
from tenants.tenancy.roles import Role

GetResponse = Callable[[HttpRequest], HttpResponse]


class AccessMiddleware:
    """Runs before each view. A view without a declaration is refused, so that no route is open by forgetting."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        acting: Impersonation | None = request.acting  # type: ignore[attr-defined]  # ours
        if acting is not None and not response.streaming and "text/html" in response.get("Content-Type", ""):
            response.content = _without_refused_forms(response.content.decode(), request.path, acting).encode()
        return response

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        access: Access | None = getattr(view, "access", None)
        if access is None:
            raise ImproperlyConfigured(f"{request.path} does not say who may call it; see portal/web/access.py.")
        if access.level == "api":
            raise ImproperlyConfigured(
                f"{request.path} is the API's: only api/door/door_middleware.py lets anybody in."
            )
        desk: str | None = kwargs.pop("desk", None)  # no view gets it
        refusal_views.note_run_out(request)
        if access.level in ("member", "signed_in") and request.acting_has_ended:  # type: ignore[attr-defined]  # ours
            return refusal_views.impersonation_is_over(request)
        acting: Impersonation | None = request.acting  # type: ignore[attr-defined]  # ours
        if (refusal := _refusal_while_acting(acting, request.method in SAFE, view, access)) is not None:
            return refusal_views.forbidden(request, refusal)
        if request.acting is not None and request.method not in SAFE and does_lead_out(view):  # type: ignore[attr-defined]
            refusal_views.end_acting(request, why="stopped")
        if access.level == "public":
            return None
        if not request.user.is_authenticated:
            return refusal_views.ask_to_sign_in(request)
        if access.level == "operator" and not request.user.is_operator:
            return refusal_views.forbidden(request, "This is for the platform's operators.")
        has_factor = bool(request.user.second_factors)
        if access.level == "operator" and settings.OPERATOR_SECOND_FACTOR and not has_factor:
            return refusal_views.ask_for_second_factor(request, "The operators' admin")
        return self._check_member(request, view, access, desk) if access.level == "member" else None

    def _check_member(
        self, request: HttpRequest, view: Callable[..., HttpResponse], access: Access, desk: str | None
    ) -> HttpResponse | None:
        tenant: TenantContext | None = request.tenant  # type: ignore[attr-defined]
        if tenant is None:
            return refusal_views.ask_for_tenant(request)
        if tenant.where.purged:
            return refusal_views.being_deleted(request, tenant.name)
        if tenant.suspended and not (tenant.acted_by and request.method in SAFE):
            return refusal_views.suspended(request, tenant)
        user: User = request.user  # type: ignore[assignment]  # signed in: our User
        if tenant.needs_second_factor and not (user.second_factors or tenant.acted_by):
            return refusal_views.ask_for_second_factor(request, tenant.name)
        if request.method not in SAFE:
            if tenant.closes_at and not is_open_while_closing(view):
                return refusal_views.closing(request, tenant)
            mark = request.POST.get(PAGE_MARK, "")
            if not page_mark.matches(mark, tenant.user_id, tenant.tenant_id):
                return refusal_views.wrong_tenant(request, Stash.of(request))
        if desk is not None and desk != tenant.slug:
            return refusal_views.address_of_another_desk(request, tenant, desk)
        note_let_in(request, tenant)
        if not tenant.role.at_least(Role(access.role)):
            return refusal_views.forbidden(request, f"This needs the role {_roles_from(Role(access.role))}.")
        return None


def _refusal_while_acting(
    acting: Impersonation | None, is_safe: bool, view: Callable[..., HttpResponse], access: Access
) -> str | None:
    """Return why an operator who acts as a member may not call this view, None where they may."""
    if acting is None or does_lead_out(view):
        return None
    if access.level == "signed_in":
        return f"This page is {acting.member_name}'s own."
    if is_safe:
        return None
    if access.level != "member" or is_in_person(view) or not Role.AGENT.at_least(Role(access.role)):
        return f"Only {acting.member_name} can do this."
    return None if acting.may_write else "You only read in this visit. Nothing was changed."


_POST_FORM: Final = re.compile(r"""(<form\b(?=[^>]*\bmethod="post")[^>]*>)(.*?)(</form>)""", re.DOTALL | re.IGNORECASE)
_ACTION: Final = re.compile(r"""\baction="([^"]*)\"""")


def _without_refused_forms(page: str, path: str, acting: Impersonation) -> str:
    """Disable the forms of a page whose sending would be refused, so that nobody types what would be lost."""

    def disabled(form: re.Match[str]) -> str:
        action = _ACTION.search(form[1])
        address = unescape(action[1]).partition("?")[0] if action else ""
        try:
            view = resolve(address or path).func
        except Resolver404:
            return form[0]
        access: Access | None = getattr(view, "access", None)
        if access is None or _refusal_while_acting(acting, False, view, access) is None:
            return form[0]
        return f'{form[1]}<fieldset class="plain" disabled>{form[2]}</fieldset>{form[3]}'

    return _POST_FORM.sub(disabled, page)


def _roles_from(role: Role) -> str:
    return role.label if role is Role.OWNER else f"{role.label} or above"
