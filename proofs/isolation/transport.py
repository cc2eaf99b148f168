"""Send attempts through the real client, see what gets past the guard, and search what comes back.

The oracle stands behind the guard on the same client: what it forbids is a crossing at the moment when the guard lets
it through, and is not sent. Nothing is sent either that could change an item which is not scratch.

Where the guard is switched off and tenants have a role, IAM is the layer: what is forbidden and harmless is sent, and
has to be denied.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from django.conf import settings

from portal.dynamo import client, library_errors, placement
from portal.errors import ConditionFailed, NotFound, TransactionRefused, Unavailable
from portal.isolation import guard
from portal.schema.registry import Role
from proofs.isolation.attempts.attempt import AttackAttempt, as_json, is_harmless
from proofs.isolation.oracle import Oracle
from tickets.ticket import stored
from tickets.ticket.stored import CounterItem

# What stops an attempt, as the report names it.
POLICY: Final = "guard: policy"
FORM: Final = "guard: not understood"
CONDITION: Final = "engine: condition"
OWN: Final = "nothing to stop: own data only"
IAM: Final = "IAM"
# An engine that answers so has looked at the item.
_DONE: Final = ("", "ConditionalCheckFailedException", "TransactionCanceledException")
NOT_SENT: Final = "not sent: it could change data"


class Crossed(Exception):
    """Isolation does not hold. Neither an error of ours nor one of a library, so that no code handles it."""


class Unsafe(Exception):
    """The proof itself was about to write what it must not. Its own mistake: nothing was sent."""


class NotTried(Exception):
    """A request that could change data, which is not sent where only IAM would refuse it."""


def iam_is_the_wall() -> bool:
    return bool(settings.TENANT_ROLE_ARN) and not settings.DYNAMODB_GUARD


@dataclass
class Judge:
    """Stands behind the guard on clients of the portal, and lets the oracles judge all requests and their answers."""

    oracles: dict[str, Oracle]
    crossing: str = ""
    events: int = 0  # security events in the log
    passed: int = 0  # requests that the guard let through
    answered: int = 0

    @contextmanager
    def attached(self, *roles: Role) -> Iterator[None]:
        hooked = [(events, name, hook) for events in hooks_of(*roles) for name, hook in self._hooks()]
        for events, name, hook in hooked:
            events.register_last(name, hook)  # behind the guard, which is registered in the same way
        with listening(self._count):
            try:
                yield
            finally:
                for events, name, hook in hooked:
                    events.unregister(name, hook)

    def _hooks(self) -> list[tuple[str, Callable[..., None]]]:
        return [("before-parameter-build", self._judge), ("after-call.dynamodb", self._search)]

    def _judge(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        raise NotImplementedError

    def _search(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        self.answered += 1
        foreign = next(self._oracle().foreign_in(parsed), None)
        if foreign is not None:
            self._cross(f"The answer to {model.name} holds {foreign!r}, which is not the tenant's.")

    def _oracle(self) -> Oracle:
        tenant = guard.current_tenant()
        return self.oracles.get(tenant) or Oracle(tenant)

    def _cross(self, why: str) -> None:
        self.crossing = self.crossing or why
        raise Crossed(why)

    def _count(self) -> None:
        self.events += 1


@dataclass
class Wire(Judge):
    """The tenant clients, at home and at the sites of silos, while they are under attack."""

    behind_iam: bool = field(default_factory=iam_is_the_wall)
    _forbidden: bool = False  # the request on its way has to be denied

    def attempt(self, attempt: AttackAttempt) -> str:
        """Send it and return what stopped it. Raises Crossed, and Unavailable where the engine is away."""
        try:
            stopped = self._try(attempt)
        except Crossed as error:
            raise Crossed(self.crossing or str(error)) from None
        if self.crossing:  # something on the way handled it
            raise Crossed(self.crossing)
        return stopped

    def _try(self, attempt: AttackAttempt) -> str:
        before, self._forbidden = self.answered, False
        try:
            if attempt.call is not None:
                attempt.call()
            else:
                self._request(attempt)
        except guard.IsolationError as error:
            return POLICY if error.why.startswith("dynamodb:") else FORM
        except (Crossed, Unsafe):
            raise
        except NotTried:
            return NOT_SENT
        except Unavailable:
            # Some engines stumble over nonsense. Whether this one is still there, a plain read tells.
            attempt.draw.me.tenant.repository.get(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)
            return "engine: no answer"
        except (ConditionFailed, TransactionRefused):
            return CONDITION
        except NotFound:
            return "nothing found"
        except library_errors.LIBRARY_ERRORS as error:
            if "AccessDenied" in str(error):
                return IAM
            return "engine: invalid request" if self.answered > before else "client library"
        except Exception:  # a refusal of the repository, in whatever form
            return attempt.place if attempt.call else "client library"
        return OWN

    def _request(self, attempt: AttackAttempt) -> None:
        shared, me = client.connection("tenant"), attempt.draw.me
        with guard.acting_for(me.id), placement.at(me.tenant.placement):
            if attempt.operation in shared.client.meta.service_model.operation_names:
                shared.call(attempt.operation, **attempt.params)
                return
            # botocore cannot be asked for what is in no model of its; the hooks can.
            name = f"before-parameter-build.dynamodb.{attempt.operation}"
            model = SimpleNamespace(name=attempt.operation, idempotent_members=(), input_shape=None)
            shared.client.meta.events.emit(name, params=attempt.params, model=model, context={})

    def _judge(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.passed += 1
        harmless = is_harmless(model.name, params)
        if not self._oracle().allows(model.name, params):
            if not self.behind_iam:
                self._cross(f"The guard let through {model.name}, which is not the tenant's.")
            if not harmless:
                raise NotTried
            self._forbidden = True
        elif not harmless:
            raise Unsafe(f"{model.name} {as_json(params)}")

    def _search(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        if self._forbidden and (parsed.get("Error") or {}).get("Code", "") in _DONE:
            self._cross(f"IAM let through {model.name}, which is not the tenant's.")
        super()._search(parsed, model)


def hooks_of(*roles: Role) -> list[Any]:
    connections = [client.connection(role) for role in roles]
    return [connection.client_at(site).meta.events for connection in connections for site in ("", *settings.SILOS)]


@contextmanager
def listening(count: Callable[[], None]) -> Iterator[None]:
    """Count the security events instead of printing a line for each, nor one for each request."""

    class Counting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            count()

    with logged_by("pooldesk.security", Counting()), logged_by("pooldesk.requests", logging.NullHandler()):
        yield


@contextmanager
def logged_by(name: str, handler: logging.Handler) -> Iterator[None]:
    """Let one handler alone have what is logged under this name."""
    log = logging.getLogger(name)
    before = log.handlers, log.propagate
    log.handlers, log.propagate = [handler], False
    try:
        yield
    finally:
        log.handlers, log.propagate = before
