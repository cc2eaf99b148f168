"""Check each request against what its view declares, and against its tenant.

A page of a desk is for members of the request's tenant alone. The desk's name in the address must be that tenant's,
and an unsafe request must carry the mark of a page that was made for this person in this tenant. Neither is a source
of keys: whatever they say, a view gets that tenant's data or none.

An auditor is let into the pages that are marked for auditors and into no other, whatever role those ask members for.
Each page that an auditor looks at is in the desk's audit trail, once in LOOK_SECONDS for each session.

An operator who acts as a member reads what the member reads. Where that was chosen, tickets may be changed too. Pages
of the person or of the desk itself (the account, members, keys, settings) are always refused.

Each refusal is a page with a way on and with what was typed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html import unescape
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse
from django.utils.http import escape_leading_slashes
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.errors import PortalError
from portal.load import guest_limits
from portal.web import access, locales, middleware
from portal.web.access import SAFE, Access, FindDesk, for_auditors, in_person, leads_out, open_while_closing
from portal.web.client_address import client_address
from portal.web.stash import PAGE_MARK, Stash
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.impersonation import impersonating
from tenants.membership import members
from tenants.sign_in import impersonation_session
from tenants.sign_in.accounts import Profile, User
from tenants.sign_in.forms import SignInForm
from tenants.sign_in.impersonation_session import Impersonation
from tenants.tenancy import context, template_context
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import ENTERING, WAITING_KEY, IdentifiedRequest, actor_of, note_let_in
from tenants.tenancy.tenant_middleware import NotAdmitted, charge, units_of

AUDITORS_PAGE: Final = "tenants:evidence"  # the first one
LOOK_SECONDS: Final = 900  # for which a look at a page is in the audit trail once
_FIRST_PAGES: Final = ("tickets:queue", "tickets_without_desk", "desk_home")  # where a sign-in or a bare address leads
_LOOKED: Final = "looked_at"  # in an auditor's session: the pages with the moments of the last rows, in seconds
GetResponse = Callable[[HttpRequest], HttpResponse]


class AccessMiddleware:
    """Runs before each view. A view without a declaration is refused, so that no route is open by forgetting."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: IdentifiedRequest) -> HttpResponse:
        response = self.get_response(request)
        acting = request.acting
        if acting is not None and not response.streaming and "text/html" in response.get("Content-Type", ""):
            response.content = _without_refused_forms(response.content.decode(), request.path, acting).encode()
        return response

    def process_view(
        self, request: IdentifiedRequest, view: Callable[..., HttpResponse], args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        access: Access | None = getattr(view, "access", None)
        if access is None:
            raise ImproperlyConfigured(f"{request.path} does not say who may call it; see portal/web/access.py.")
        if access.level == "api":
            raise ImproperlyConfigured(
                f"{request.path} is the API's: only api/edge/edge_middleware.py lets anybody in."
            )
        if access.find is not None:
            return _find_desk(request, access, access.find, kwargs)
        desk: str | None = kwargs.pop("desk", None)  # no view gets it
        note_run_out(request)
        if access.level in ("member", "signed_in") and request.acting_has_ended:
            return impersonation_is_over(request)
        acting = request.acting
        if (refusal := _refusal_while_acting(acting, request.method in SAFE, view, access)) is not None:
            return forbidden(request, refusal)
        if request.acting is not None and request.method not in SAFE and leads_out.on(view):
            end_acting(request, why=gettext_noop("stopped"))
        if access.level == "public":
            return None
        if not request.user.is_authenticated:
            return ask_to_sign_in(request)
        if access.level == "operator" and not request.user.is_operator:
            return forbidden(request, _("This is for the platform's operators."))
        has_factor = bool(request.user.second_factors)
        if access.level == "operator" and settings.OPERATOR_SECOND_FACTOR and not has_factor:
            return ask_for_second_factor(request, _("The operators' admin"))
        return self._check_member(request, view, access, desk) if access.level == "member" else None

    def _check_member(
        self, request: IdentifiedRequest, view: Callable[..., HttpResponse], access: Access, desk: str | None
    ) -> HttpResponse | None:
        tenant = request.tenant
        if tenant is None:
            return ask_for_tenant(request)
        if tenant.where.purged:
            return being_deleted(request, tenant.name)
        if tenant.suspended and not (tenant.acted_by and request.method in SAFE):
            return render(request, "tenants/suspended.html", {"tenant_name": tenant.name}, status=403)
        user: User = request.user  # type: ignore[assignment]  # signed in: our User
        if tenant.needs_second_factor and not (user.second_factors or tenant.acted_by):
            return ask_for_second_factor(request, tenant.name)
        if request.method not in SAFE:
            if tenant.closes_at and not open_while_closing.on(view):
                # A desk that is closing can only be read. The page shows the typed text, so that it can be copied.
                page = {"stash": Stash.of(request), "closing": tenant}
                return render(request, "tenants/closing_refused.html", page, status=403)
            mark = request.POST.get(PAGE_MARK, "")
            if not context.is_page_mark(mark, tenant.user_id, tenant.tenant_id):
                return wrong_tenant(request, Stash.of(request))
        if desk is not None and desk != tenant.slug:
            return address_of_another_desk(request, tenant, desk)
        if WAITING_KEY in request.session:
            note_let_in(request, tenant)
        if tenant.is_auditor:
            return self._check_auditor(request, view, tenant)
        if not tenant.role.at_least(Role(access.role)):
            return forbidden(request, _("This needs the role %(role)s.") % {"role": _roles_from(Role(access.role))})
        return None

    def _check_auditor(
        self, request: IdentifiedRequest, view: Callable[..., HttpResponse], tenant: TenantContext
    ) -> HttpResponse | None:
        is_safe = request.method in SAFE
        if for_auditors.on(view):
            if is_safe:
                _note_look(request, tenant)
            return None
        if is_safe and request.resolver_match and request.resolver_match.view_name in _FIRST_PAGES:
            return redirect(AUDITORS_PAGE)
        return forbidden(request, _("Auditors see the audit pages, and no other page of a desk."))


def _note_look(request: IdentifiedRequest, tenant: TenantContext) -> None:
    """Have the audit trail say that an auditor looks at this page, unless it said so a while ago of this session."""
    looked: dict[str, int] = request.session.get(_LOOKED, {})
    now, page = int(time.time()), _page_looked_at(request, tenant)
    if looked.get(page, 0) > now - LOOK_SECONDS:
        return
    access.add_cost(request, ENTERING)
    name = template_context.title_of(request.resolver_match.view_name if request.resolver_match else "") or page
    recording.record(
        AuditEntry(tenant.tenant_id, AuditAction.AUDITOR_LOOKED, actor_of(request), "page", page.strip("/"), name)
    )
    lately = {path: at for path, at in looked.items() if at > now - LOOK_SECONDS}
    request.session[_LOOKED] = {**lately, page: now}


def _page_looked_at(request: IdentifiedRequest, tenant: TenantContext) -> str:
    """Return the address of a page without what it is about: that is the reader's text, which would stand in the
    desk's trail and make a row for each."""
    route = request.resolver_match.route if request.resolver_match else ""
    return f"/{route}".replace("<slug:desk>", tenant.slug).partition("<")[0]


def _find_desk(
    request: IdentifiedRequest, access: Access, find: FindDesk, kwargs: dict[str, Any]
) -> HttpResponse | None:
    """Put the desk that a guest's address names on the request, and charge its guests together; for a member's open
    page, charge the desk itself."""
    try:
        desk: TenantContext = find(kwargs)
        units = units_of(changes=request.method not in SAFE)
        if access.of_member:
            answer = charge(desk, units)
            if answer is not None and not answer.allowed:
                raise NotAdmitted(answer)
        else:
            guest_limits.charge(desk.tenant_id, units, per_second=desk.units_per_second)
    except PortalError as error:
        return middleware.error_page(request, error)
    request.desk = desk
    locales.use(Profile().locale(desk.chosen_zone, locales.current().language))
    return None


def _refusal_while_acting(
    acting: Impersonation | None, is_safe: bool, view: Callable[..., HttpResponse], access: Access
) -> str | None:
    """Return why an operator who acts as a member may not call this view, None where they may."""
    if acting is None or leads_out.on(view):
        return None
    if access.level == "signed_in":
        return _("This page is %(member)s's own.") % {"member": acting.member_name}
    if is_safe:
        return None
    if access.level != "member" or in_person.on(view) or not Role.AGENT.at_least(Role(access.role)):
        return _("Only %(member)s can do this.") % {"member": acting.member_name}
    return None if acting.may_write else _("You only read in this visit. Nothing was changed.")


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
    return role.label if role is Role.OWNER else _("%(role)s or above") % {"role": role.label}


def ask_to_sign_in(request: IdentifiedRequest) -> HttpResponse:
    """Send to the sign-in page; a form that was sent is kept in it and offered again afterwards."""
    stash = Stash.of(request)
    if stash is None:
        return _go(request, reverse("tenants:login"))
    form = SignInForm(initial={"next": ""})
    return render(request, "tenants/login.html", {"form": form, "resume": stash}, status=401)


def ask_for_tenant(request: IdentifiedRequest) -> HttpResponse:
    """Send to the choice of desks; a form that was sent is kept."""
    stash = Stash.of(request)
    return _go(request, reverse("tenants:pick")) if stash is None else wrong_tenant(request, stash)


def ask_for_second_factor(request: IdentifiedRequest, where: str) -> HttpResponse:
    """Send to the page where a second factor is added, which this place asks for; a form that was sent is shown."""
    stash = Stash.of(request)
    if stash is None and request.method in SAFE:
        return _go(request, reverse("tenants:security"))
    return render(request, "tenants/second_factor_needed.html", {"where": where, "stash": stash}, status=403)


def forbidden(request: IdentifiedRequest, reason: str) -> HttpResponse:
    """Answer 403 with the reason, and with what was typed: a role can change while somebody writes."""
    return render(request, "portal/403.html", {"reason": reason, "stash": Stash.of(request)}, status=403)


def impersonation_is_over(request: IdentifiedRequest) -> HttpResponse:
    """Answer 403 with the way back to the admin, for an operator who acted as a member until now; nothing was done."""
    end_acting(request, why=gettext_noop("the time was up, or it was not allowed any more"))
    return render(request, "tenants/impersonation_over.html", {"stash": Stash.of(request)}, status=403)


def note_run_out(request: IdentifiedRequest) -> None:
    """Write the row that ends a visit whose time ran out, at the operator's next click of any kind in this browser.

    The operator's own session remembers the visit: its cookie and its item may be gone by then.
    """
    kept: dict[str, Any] | None = request.session.get(impersonation_session.VISIT)
    if kept is not None and kept["until"] <= time.time():
        del request.session[impersonation_session.VISIT]
        access.add_cost(request, ENTERING)
        ids = impersonation_session.read_cookie(request.COOKIES.get(impersonation_session.COOKIE, ""))
        why, origin = "its time was over", client_address(request)
        if ids is None or impersonating.end(ids, origin=origin, why=why) is None:
            impersonating.note_end(Impersonation(**kept), origin=origin, why=why)


def end_acting(request: IdentifiedRequest, *, why: str) -> None:
    """End what the cookie of an operator who acts as a member names, where it still exists."""
    ids = impersonation_session.read_cookie(request.COOKIES.get(impersonation_session.COOKIE, ""))
    if ids is not None:
        access.add_cost(request, ENTERING)
        if impersonating.end(ids, origin=client_address(request), why=why):
            request.session.pop(impersonation_session.VISIT, None)
        request.acting_cookie = ""


def being_deleted(request: IdentifiedRequest, name: str) -> HttpResponse:
    """Answer 403: the purge of the desk has begun, and operators are shut out as well."""
    return render(request, "tenants/being_deleted.html", {"tenant_name": name}, status=403)


def wrong_tenant(request: IdentifiedRequest, stash: Stash | None) -> HttpResponse:
    """Answer 409: the page was made for another tenant, or for another person.

    Whose it was is looked for among the caller's own memberships by comparing marks, so the answer never names a
    tenant that the caller is not in.
    """
    page_tenant = None
    if stash is not None and stash.page_mark:
        access.add_cost(request, ENTERING)
        for membership in members.memberships_of(str(request.user.pk)):
            if context.is_page_mark(stash.page_mark, str(request.user.pk), membership.tenant_id):
                page_tenant = {"id": membership.tenant_id, "name": membership.name}
                break
    return render(request, "portal/409_tenant.html", {"page_tenant": page_tenant, "stash": stash}, status=409)


def address_of_another_desk(request: IdentifiedRequest, tenant: TenantContext, desk: str) -> HttpResponse:
    """Answer a page's address that names none of the caller's desks: by a redirect where the caller's desk had this
    name before, else by 404, whether there is such a desk or not.

    A form is sent on by 307: its page's mark is that of the caller's desk, so it was made before that was renamed.
    """
    if request.method in SAFE and desk != tenant.former_slug:
        return middleware.not_found(request)
    address = request.get_full_path().removeprefix(f"/{desk}/")
    return redirect(f"/{tenant.slug}/{address}", preserve_request=request.method not in SAFE)


def _shown_address(request: IdentifiedRequest) -> str:
    """Return the address of the page that a partial request leads to or was made from, on this site."""
    current = urlsplit(request.headers.get("HX-Current-URL", ""))
    if "HX-Boosted" in request.headers or not current.path:
        return request.get_full_path()
    return f"{escape_leading_slashes(current.path)}?{current.query}".rstrip("?")


def _go(request: IdentifiedRequest, url: str) -> HttpResponse:
    """Redirect there, with the way back. A partial request must move the whole page, not swap a page into a part."""
    partial = "HX-Request" in request.headers
    if request.method in SAFE:
        query = QueryDict(mutable=True)
        query[REDIRECT_FIELD_NAME] = _shown_address(request) if partial else request.get_full_path()
        url = f"{url}?{query.urlencode(safe='/')}"
    return HttpResponse(status=204, headers={"HX-Redirect": url}) if partial else redirect(url)
