"""Hold each tenant to what it may ask for, at the door: a request over its limits is answered at once, with 429.

What is asked is charged to the tenant that the session is pinned to, once it is certain that the caller is a member.
Before that the cookie names the tenant under our signature: a request that would be refused anyway is refused without
a read, so that a flood costs little. Whoever holds an old cookie can be refused by that, and spends nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from portal.dynamo import retry
from portal.errors import LimitReached
from portal.limits import concurrency, rates, share_keeper
from portal.limits.tenant_limiter import RateAnswer, limiter
from portal.noise import noise_teller
from portal.noise.noise_tally import NoiseTally
from portal.schema import keys
from portal.web import error_pages
from portal.web.access import SAFE, is_unlimited
from tenants.tenancy import pinned_tenant
from tenants.tenancy.context import TenantContext

GetResponse = Callable[[HttpRequest], HttpResponse]


class TenantLimitMiddleware:
    """Stands around the identity. What leads in or out, and what operators do, is never limited."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        ids = pinned_tenant.read_cookie(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
        if ids is None or not keys.TENANT_ID.match(ids.tenant_id):
            return self.get_response(request)
        share_keeper.start()
        noise_teller.start("web", "platform")
        foreseen = limiter.foresee(ids.tenant_id, _units(request))
        if foreseen is not None and _is_limited(request):
            noise_teller.note(ids.tenant_id, NoiseTally(refused=1))
            return _too_many(request, foreseen)
        if not concurrency.requests.enter(ids.tenant_id):
            if not _is_limited(request):
                return self.get_response(request)
            noise_teller.note(ids.tenant_id, NoiseTally(refused=1))
            return _too_much_at_once(request)
        try:
            with retry.on_behalf_of(ids.tenant_id):
                return self._counted(request)
        finally:
            concurrency.requests.leave(ids.tenant_id)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        if is_unlimited(view):
            return None
        answer = _charge(request)
        return None if answer is None or answer.allowed else _too_many(request, answer)

    def _counted(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        match = request.resolver_match
        if not hasattr(request, "rate_answer") and not (match and is_unlimited(match.func)):
            # No view was reached: there is no such address, or the form is not one of ours.
            answer = _charge(request)
            if answer is not None and not answer.allowed:
                return _too_many(request, answer)
        answer = getattr(request, "rate_answer", None)
        return response if answer is None else _told(response, answer)


def _units(request: HttpRequest) -> int:
    return rates.READ_UNITS if request.method in SAFE else rates.CHANGE_UNITS


def _charge(request: HttpRequest) -> RateAnswer | None:
    tenant: TenantContext | None = getattr(request, "tenant", None)
    if tenant is None:
        return None
    units = _units(request)
    answer = limiter.spend(tenant.tenant_id, units, per_second=tenant.units_per_second)
    allowed = answer is None or answer.allowed
    noise_teller.note(tenant.tenant_id, NoiseTally(requests=1, units=units) if allowed else NoiseTally(refused=1))
    request.rate_answer = answer  # type: ignore[attr-defined]  # ours
    return answer


def _is_limited(request: HttpRequest) -> bool:
    try:
        return not is_unlimited(resolve(request.path_info).func)
    except Resolver404:
        return True


def _too_many(request: HttpRequest, answer: RateAnswer) -> HttpResponse:
    error = LimitReached("This desk is asking for more pages than its plan allows.", retry_after=max(1, answer.seconds))
    return _told(error_pages.error_page(request, error), answer)


def _told(response: HttpResponse, answer: RateAnswer) -> HttpResponse:
    for name, value in answer.headers.items():
        response[name] = value
    return response


def _too_much_at_once(request: HttpRequest) -> HttpResponse:
    return error_pages.error_page(request, LimitReached("This desk is asking for very much at the same moment."))
