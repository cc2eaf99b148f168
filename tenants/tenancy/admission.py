"""Hold a tenant to what it may ask for, whichever way it asks: the pages' middleware and the API's door both call this.

Before it is certain who asks, a request that would be refused anyway is refused without a read, so that a flood costs
little. A request is charged once the caller is certain; a request that is refused before that uses none of the tenant's
budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.utils.translation import gettext as _

from portal.dynamo import retry
from portal.errors import LimitReached
from portal.load import measurement, tenant_limiter
from portal.load.measurement import NoiseTally
from portal.load.tenant_limiter import RateAnswer, limiter
from tenants.tenancy.context import TenantContext


class NotAdmitted(LimitReached):
    """The tenant asks for too much. `answer` tells of its rate, None where too much is at work at the same time.

    `code` tells programs which of the two it is: fewer requests, or fewer of them at once.
    """

    def __init__(self, answer: RateAnswer | None = None) -> None:
        if answer is None:
            self.code = tenant_limiter.TOO_MANY
            super().__init__(_("This desk has as many requests at work as it may have at the same time."))
        else:
            self.code = "rate_limited"
            sentence = _("This desk is asking for more than its plan allows.")
            super().__init__(sentence, retry_after=max(1, answer.seconds))
        self.answer = answer


def units_of(*, changes: bool) -> int:
    """Return the units that a request is charged with: one that changes something, or one that only reads."""
    return tenant_limiter.CHANGE_UNITS if changes else tenant_limiter.READ_UNITS


@contextmanager
def admitted(tenant_id: str, units: int, *, is_limited: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Count the request inside as work of the tenant that it claims to be of. Raises NotAdmitted.

    `is_limited` is asked before something is refused: what leads in or out, say, never is.
    """
    foreseen = limiter.foresee(tenant_id, units)
    if foreseen is not None and is_limited():
        _refuse(tenant_id, foreseen)
    has_place = tenant_limiter.requests.enter(tenant_id)
    if not has_place and is_limited():
        _refuse(tenant_id, None)
    try:
        with retry.on_behalf_of(tenant_id):
            yield
    finally:
        if has_place:
            tenant_limiter.requests.leave(tenant_id)


def _refuse(tenant_id: str, answer: RateAnswer | None) -> None:
    measurement.note(tenant_id, NoiseTally(refused=1))
    raise NotAdmitted(answer)


def charge(tenant: TenantContext, units: int) -> RateAnswer | None:
    """Charge the tenant, whose caller is certain now, and return what is left, None for a tenant without a limit."""
    answer = limiter.spend(tenant.tenant_id, units, per_second=tenant.units_per_second)
    allowed = answer is None or answer.allowed
    measurement.note(tenant.tenant_id, NoiseTally(requests=1, units=units) if allowed else NoiseTally(refused=1))
    return answer
