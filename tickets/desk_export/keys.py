"""Name the partition of the directory in which exports are, and form the keys of the parts of their files."""

from __future__ import annotations

from typing import Final

from portal.schema import keys

EXPORTS: Final = keys.part("EXPORT")


def part(file: str, number: int) -> str:
    """Return the sort key of a part of an exported file; parts count from 1 and sort by their numbers."""
    return keys.joined(file, f"{int(keys.whole_number(number, 'a part', least=1)):06}")
