"""Link the pages of a list by opaque, signed cursors.

A cursor is a page's position, bound to the tenant and the query that it was made for. One that was altered, made for
another tenant, another filter or another shard layout, raises Invalid. It holds sort keys and ticket numbers, never a
partition key: the tenant is put in front again by the store.

A list is read in one direction or the other, and each of its pages has a row at which reading began and one at which
it ended. The next page begins at the end, where there is more; the previous page begins at the beginning, where a page
came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core import signing
from django.utils.translation import gettext as _

from portal.errors import Invalid

_T = TypeVar("_T")


class BadCursor(Invalid):
    """No position of this list stands in the text. The edge knows the name of the parameter that it came in."""


def _salt(tenant_id: str, query: tuple[object, ...]) -> str:
    return "cursor:" + repr((tenant_id, query))


def dump(position: list[Any], *, tenant_id: str, query: tuple[object, ...]) -> str:
    """Sign a position (a short list of JSON values) for this tenant and this query."""
    return signing.dumps(position, salt=_salt(tenant_id, query), compress=True)


def load(cursor: str, *, tenant_id: str, query: tuple[object, ...]) -> list[Any]:
    """Return the position in a cursor. Raises Invalid for what `dump` did not make for the same tenant and query."""
    if len(cursor) > 2000:
        raise BadCursor(_("This page link is damaged."))
    try:
        position = signing.loads(cursor, salt=_salt(tenant_id, query))
    except (signing.BadSignature, ValueError, UnicodeError) as error:
        raise BadCursor(_("This page link is damaged, or was made for another list.")) from error
    if not isinstance(position, list):
        raise BadCursor(_("This page link is damaged."))
    return position


@dataclass(frozen=True)
class Place:
    """Where a page begins: behind a position of the list or, read backwards, before it."""

    position: list[Any]
    backwards: bool


@dataclass(frozen=True)
class Links:
    """The cursors of the neighbouring pages, None where there is none."""

    next: str | None = None
    previous: str | None = None


@dataclass(frozen=True)
class Pager:
    """The cursors of one list, bound to its tenant ("" for lists of operators) and to `query`."""

    tenant_id: str
    query: tuple[object, ...]

    def place(self, text: str, *, size: int) -> Place:
        """Read a cursor whose position has `size` values. Raises Invalid for what is not a cursor of this list."""
        backwards, *position = load(text, tenant_id=self.tenant_id, query=self.query) or [None]
        if backwards not in (0, 1) or len(position) != size:
            raise BadCursor(_("This page link is damaged."))
        return Place(position, bool(backwards))

    def links(self, place: Place | None, *, begin: Sequence[Any], end: Sequence[Any], more: bool) -> Links:
        """Link a page that was read from `place`, None for the first, to its neighbours.

        `begin` and `end` are the positions at which reading began and ended; `more` says that the list goes on there.
        """
        backwards = place is not None and place.backwards
        onwards = self._cursor(end, backwards) if more else None
        back = self._cursor(begin, not backwards) if place is not None else None
        return Links(back, onwards) if backwards else Links(onwards, back)

    def _cursor(self, position: Sequence[Any], backwards: bool) -> str:
        return dump([int(backwards), *position], tenant_id=self.tenant_id, query=self.query)
