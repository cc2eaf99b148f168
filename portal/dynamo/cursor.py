"""Opaque, signed cursors: a page's position, bound to the tenant and the query that it was made for.

A cursor that was altered, made for another tenant, another filter or another shard layout, raises Invalid. It
holds sort keys and ticket numbers, never a partition key: the tenant is put in front again by the repository.
"""

from __future__ import annotations

from typing import Any

from django.core import signing

from portal.errors import Invalid


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
        raise BadCursor("This page link is damaged.")
    try:
        position = signing.loads(cursor, salt=_salt(tenant_id, query))
    except (signing.BadSignature, ValueError, UnicodeError) as error:
        raise BadCursor("This page link is damaged, or was made for another list.") from error
    if not isinstance(position, list):
        raise BadCursor("This page link is damaged.")
    return position
