"""Write a tenant's objects into its file as rows like those of tables, each with a part of an object, and read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from portal.errors import NotFound
from portal.objects.object_store import ObjectStore
from portal.schema.holdings import Raw

TABLE: Final = "object"  # stands where the rows of tables name theirs
_PART: Final = 512 * 1024  # bytes of a row; a line has less than a million
_MOST: Final = 200 * 1024 * 1024  # bytes of an object that is brought in: it is held in memory
_NAME: Final = re.compile(r"(?!\.+\Z)[A-Za-z0-9._-]{1,200}\Z")


def rows(tenant_id: str, prefix: str, names: Iterator[str]) -> Iterator[tuple[str, Raw]]:
    """Yield the rows of a tenant's objects whose keys are this prefix and one of these names. One that is gone is left
    out."""
    store = ObjectStore("lifecycle", tenant_id)
    for name in names:
        try:
            pieces = store.pieces(prefix + name)
        except NotFound:
            continue
        held = b""
        for piece in pieces:
            held += piece
            if len(held) > _PART:
                yield TABLE, _row(name, held[:_PART], is_last=False)
                held = held[_PART:]
        yield TABLE, _row(name, held, is_last=True)


def _row(name: str, data: bytes, *, is_last: bool) -> Raw:
    return {"name": {"S": name}, "data": {"B": data}, "last": {"BOOL": is_last}}


def fault(table: str, item: Raw) -> str:
    """Return why a row of a file can be no part of an object, "" where it is one."""
    if table != TABLE or item.keys() != {"name", "data", "last"}:
        return "is no part of an object"
    is_part = isinstance(item["data"]["B"], bytes) and len(item["data"]["B"]) <= _PART
    if not (_NAME.match(item["name"]["S"]) and is_part and isinstance(item["last"]["BOOL"], bool)):
        return "is no part of an object"
    return ""


class ObjectArrival:
    """Puts objects together from their rows, and stores each under this prefix once it is whole."""

    def __init__(self, tenant_id: str, prefix: str) -> None:
        self._store, self._prefix = ObjectStore("lifecycle", tenant_id), prefix
        self._name, self._parts = "", list[Any]()

    def take(self, item: Raw) -> bool:
        """Take the next row. Returns whether an object was stored, so that all rows until here are done with."""
        name = item["name"]["S"]
        if name != self._name:
            self._name, self._parts = name, []
        self._parts.append(item["data"]["B"])
        if sum(map(len, self._parts)) > _MOST:
            raise ValueError("an object of a file is too large")
        if not item["last"]["BOOL"]:
            return False
        self._store.put(self._prefix + name, b"".join(self._parts))
        self._name = ""
        return True
