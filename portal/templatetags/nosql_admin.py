"""Help the admin's templates to label cells and to say what a page cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from portal.dynamo import meter
from portal.plain_text import amount

register = template.Library()

_CELL: Final = re.compile(r"\s*<t[dh]")


@register.simple_tag
def cost() -> str:
    """Return the page's bill so far; the writes of a form happened before the redirect that led here."""
    bill = meter.current()
    if bill is None:
        return ""
    calls = len(bill.calls)
    return (
        f"This page took {amount(bill.trips, 'round trip')}, {amount(calls, 'call')}, "
        f"{amount(bill.items, 'item')}, {bill.read_units:g} read and {bill.write_units:g} write units."
    )


@register.filter
def grouped(count: int) -> str:
    """Write 1234567 as 1,234,567."""
    return f"{count:,}"


@register.filter
def labelled(cells: list[str], headers: list[dict[str, Any]]) -> Iterator[SafeString]:
    """Yield the rendered cells of a row, each with its column's name for narrow screens, which hide the header."""
    for cell, header in zip(cells, headers, strict=True):
        text = str(header["text"])
        label = format_html(' data-label="{}"', text[:1].upper() + text[1:]) if "<" not in text else ""
        tag = _CELL.match(cell)
        end = tag.end() if tag else 0
        yield mark_safe(cell[:end] + label + cell[end:])  # noqa: S308  # safe strings of Django's admin and format_html
