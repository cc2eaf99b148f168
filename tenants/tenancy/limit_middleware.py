"""Hold each tenant to what it may ask for, at the door: a request over its limits is answered at once, with 429.

What is asked is charged to the pinned tenant that the address names, once it is certain that the caller is a member.
Before that the cookie names the tenant under our signature: a request that would be refused anyway is refused without
a read. Whoever holds an old cookie can be refused by that, and spends nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from portal.limits.tenant_limiter import RateAnswer
from portal.schema import keys
from portal.web import error_pages
from portal.web.access import SAFE, is_unlimited
from tenants.tenancy import admission, session_cookie
from tenants.tenancy.admission import NotAdmitted
from tenants.tenancy.context import TenantContext

GetResponse = Callable[[HttpRequest], HttpResponse]


class TenantLimitMiddleware:
    """Stands around the identity. What leads in or out, and what operators do, is never limited."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        ids = session_cookie.read(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
        tenant_id = ids.tenant_at(request.path_info) if ids else ""
        if not keys.TENANT_ID.match(tenant_id):
            return self.get_response(request)
        units = admission.units_of(changes=request.method not in SAFE)
        try:
            with admission.admitted(tenant_id, units, is_limited=lambda: _is_limited(request)):
                return self._counted(request)
        except NotAdmitted as refused:
            return _refused(request, refused)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        if is_unlimited(view):
            return None
        answer = _charge(request)
        return None if answer is None or answer.allowed else _refused(request, NotAdmitted(answer))

    def _counted(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        match = request.resolver_match
        if not hasattr(request, "rate_answer") and not (match and is_unlimited(match.func)):
            # No view was reached: there is no such address, or the form is not one of ours.
            answer = _charge(request)
            if answer is not None and not answer.allowed:
                return _refused(request, NotAdmitted(answer))
        answer = getattr(request, "rate_answer", None)
        return response if answer is None else _told(response, answer)


def _charge(request: HttpRequest) -> RateAnswer | None:
    tenant: TenantContext | None = getattr(request, "tenant", None)
    if tenant is None or tenant.acted_by:  # an operator's help is nothing that the tenant asks for
        return None
    answer = admission.charge(tenant, admission.units_of(changes=request.method not in SAFE))
    request.rate_answer = answer  # type: ignore[attr-defined]  # ours
    return answer


def _is_limited(request: HttpRequest) -> bool:
    try:
        return not is_unlimited(resolve(request.path_info).func)
    except Resolver404:
        return True


def _refused(request: HttpRequest, refused: NotAdmitted) -> HttpResponse:
    page = error_pages.error_page(request, refused)
    return page if refused.answer is None else _told(page, refused.answer)


def _told(response: HttpResponse, answer: RateAnswer) -> HttpResponse:
    for name, value in answer.headers.items():
        response[name] = value
    return response
