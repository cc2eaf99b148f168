"""Style sheets name sides by the direction of the text, so that pages from right to left need no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

SHEETS = sorted(
    path for path in (Path(settings.BASE_DIR) / "static/css").glob("*.css") if path.name != "admin.css"
)  # that of the operators is in English
_DECLARATION = re.compile(r"(?<![-\w])([-\w]+)\s*:\s*([^;{}]+)(?=[;}])")
_VALUE = re.compile(r"(?:[-\w.%]|\((?:[^()]|\([^()]*\))*\))+")
_SIDED = re.compile(r"(^|-)(left|right)(-|$)")
_FOUR_SIDES = re.compile(r"(margin|padding|inset|border-(width|color|style)|scroll-(margin|padding))")


def physical(sheet: str) -> list[str]:
    """Return the declarations of a style sheet that mean a side of the window."""
    found = []
    for name, value in _DECLARATION.findall(re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)):
        values = _VALUE.findall(value)
        is_uneven = len(values) == 4 and values[1] != values[3] and _FOUR_SIDES.fullmatch(name)
        moves = re.search(r"translateX|inset -?\d*[1-9]", value) and "--forward" not in value and "inset 0" not in value
        if _SIDED.search(name) or any(map(_SIDED.fullmatch, values)) or is_uneven or moves:
            found.append(f"{name}: {value}")
    return found


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_a_style_sheet_has_no_left_and_no_right(sheet: Path) -> None:
    assert physical(sheet.read_text()) == []


@pytest.mark.parametrize(
    ("declaration", "is_refused"),
    [
        ("margin-left: 1px", True),
        ("text-align: right", True),
        ("left: 0", True),
        ("padding: 1px 2px 3px 4px", True),
        ("border-top-left-radius: 1px", True),
        ("box-shadow: inset 3px 0 red", True),
        ("transform: translateX(50%)", True),
        ("padding: 1px var(--b) calc(1px + (2px)) var(--b)", False),
        ("margin-inline-start: 1px", False),
        ("box-shadow: inset 0 0 0 1px red", False),
        ("transform: translateX(calc(50% * var(--forward)))", False),
    ],
)
def test_what_is_refused(declaration: str, is_refused: bool) -> None:
    assert bool(physical(f"p {{ {declaration}; }}")) is is_refused
