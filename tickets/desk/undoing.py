"""Sign receipts of what can be undone, and undo it.

A receipt names what was done, for the tenant and the person who did it. It says nothing of how things were before: each
kind of receipt has a function that finds that out, and that leaves alone what was changed again since. So a receipt
that is used twice, or late, does no harm. The page offers it for ten seconds; the server takes it for much longer,
because a page without JavaScript keeps its button.

A package declares a kind of its own by `declare_undo`, and gives the text of `receipt` to the message of its success:
`messages.success(request, text, extra_tags=receipt)`. The notice of such a message has a button, which the key `z`
presses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.core import signing
from django.utils.translation import gettext as _

from portal.errors import Invalid
from tenants.tenancy.context import TenantContext

TAKEN_SECONDS: Final = 15 * 60
_LIMIT: Final = 1500  # characters, so that it has room in the cookie of a page's messages


@dataclass(frozen=True)
class Undone:
    """Say what an undo did: a sentence, "" for nothing, and one for each thing that was left as it is.

    `draft` is the text of a comment that was taken back, as its form takes it, with the ticket's `number`. `count` is
    how many tickets were looked at.
    """

    said: str
    left: tuple[str, ...] = ()
    draft: Mapping[str, Any] = field(default_factory=dict, hash=False)
    count: int = 1


TakeBack = Callable[[TenantContext, list[Any]], Undone]

_declared: Final[dict[str, tuple[TakeBack, int]]] = {}


def declare_undo(kind: str, take_back: TakeBack, *, seconds: int = TAKEN_SECONDS) -> None:
    """Let receipts of a kind be taken back, for so many seconds. Raises ValueError for a kind that is taken."""
    if _declared.setdefault(kind, (take_back, seconds)) != (take_back, seconds):
        raise ValueError(f"the undo of {kind} is declared twice")


def receipt(tenant: TenantContext, kind: str, what: list[Any]) -> str:
    """Return a receipt for JSON values of a kind that is declared, "" where they are too many to be undone."""
    made = signing.dumps([kind, *what], salt=_salt(tenant), compress=True)
    return made if len(made) <= _LIMIT else ""


def take_back(tenant: TenantContext, text: str) -> Undone:
    """Undo what a receipt names. Raises Invalid for a receipt that is too old or not this person's."""
    try:
        kind, *what = signing.loads(text[: _LIMIT + 1], salt=_salt(tenant), max_age=TAKEN_SECONDS)
        undo, seconds = _declared[kind]
        if seconds != TAKEN_SECONDS:
            signing.loads(text, salt=_salt(tenant), max_age=seconds)
    except signing.SignatureExpired as error:
        raise Invalid(_("This can no longer be undone: too much time has passed.")) from error
    except (signing.BadSignature, ValueError, TypeError, KeyError, UnicodeError) as error:
        raise Invalid(_("This change can no longer be undone.")) from error
    return undo(tenant, what)


def _salt(tenant: TenantContext) -> str:
    return "undo:" + repr((tenant.tenant_id, tenant.user_id))
