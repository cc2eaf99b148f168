"""The errors that Pooldesk raises on purpose: one small family, each with an HTTP status.

Rules and repositories raise these; the edge turns them into pages (`portal/web/middleware.py`). Errors of
boto3 and PynamoDB never travel further than `portal/dynamo/client.py`, which translates them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, TypeVar

_Model = TypeVar("_Model")

TRANSACTION_CONFLICT: Final = "TransactionConflict"  # DynamoDB's code: another transaction holds the item


class PortalError(Exception):
    """Base of the family. `message` is a sentence for a person; it never holds a key or a secret.

    `passes` says that the same request, sent again, may well be taken: nothing in it has to be mended.
    """

    status = 500
    passes = False

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class Invalid(PortalError):
    """The input cannot mean anything: a bad cursor, an unknown status. `field` names the form field, if one."""

    status = 400

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NotFound(PortalError):
    """No such object for this tenant. Another tenant's object is the same answer."""

    status = 404


class Forbidden(PortalError):
    """The object is in reach, the role is too low."""

    status = 403


class Conflict(PortalError):
    """Somebody else was first. The edge shows both versions and keeps what was typed. `field` names the form field,
    if it is about one."""

    status = 409

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class Overtaken(Conflict):
    """Others changed the same thing while this was at work, and nothing was written. Sending it again is right."""

    passes = True


class Unavailable(PortalError):
    """The engine cannot be reached or did not answer in time. Trying again later is right."""

    status = 503
    passes = True
    retry_after = 5  # seconds


class LimitReached(PortalError):
    """This tenant asks for more than its limits allow, or has too much under way. Trying again later is right."""

    status = 429
    passes = True

    def __init__(self, message: str = "", *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Throttled(Unavailable):
    """The engine refused for load, after the client's own retries."""

    retry_after = 2


# --- data-layer outcomes that a rule handles itself; they reach the edge only by mistake ---


class ConditionFailed(PortalError):
    """A single write's condition did not hold. `item` is the raw stored item when the call asked for it."""

    status = 409

    def __init__(self, message: str = "", *, item: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.item = item

    def stored(self, model: type[_Model]) -> _Model | None:
        """Return the stored item as an instance of its model, None where there is none."""
        return _made(model, self.item)


class Rejected(PortalError):
    """The engine can never take this request, however often it is sent: an item would become too large, say."""


@dataclass(frozen=True)
class Reason:
    """Why one member of a transaction was refused. `code` is DynamoDB's, e.g. ConditionalCheckFailed."""

    code: str
    message: str
    item: dict[str, Any] | None

    def stored(self, model: type[_Model]) -> _Model | None:
        """Return the stored item as an instance of its model, None where there is none."""
        return _made(model, self.item)


class TransactionRefused(PortalError):
    """A transaction was cancelled as a whole. `reasons` holds one entry per member, in the order sent, None where the
    member itself was fine; `names` holds the members' names, "" where one has none."""

    status = 409

    def __init__(self, reasons: list[Reason | None], message: str = "", *, names: Sequence[str] = ()) -> None:
        super().__init__(message or "The transaction was refused; nothing was written.")
        self.reasons = reasons
        self.names = names

    def reason(self, name: str) -> Reason | None:
        """Return why the member of this name was refused, the first one where several have it, or None where none was.

        Raises KeyError where no member has the name.
        """
        if name not in self.names:
            raise KeyError(name)
        named = (reason for given, reason in zip(self.names, self.reasons, strict=False) if given == name)
        return next((reason for reason in named if reason), None)

    def is_passing(self, *moving: str) -> bool:
        """Tell whether the same change, made anew, may succeed: each refused member met another transaction, or has
        one of these names, which are those of members that depend on what others change."""
        return all(
            reason is None or reason.code == TRANSACTION_CONFLICT or name in moving
            for name, reason in zip_longest(self.names, self.reasons)
        )


def _made(model: type[_Model], raw: dict[str, Any] | None) -> _Model | None:
    return model.from_raw_data(raw) if raw else None  # type: ignore[attr-defined]  # of a model
