"""Write the report of a proof: JSON for machines, one page for people, and a sentence for each promise."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from django.core.management.base import CommandError, CommandParser
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

Found = Mapping[str, Any]
_SHOWN: Final = 5  # values of a long list
_STYLE: Final = mark_safe(
    "<style>:root{color-scheme:light dark}@media print{body{margin:0}}"
    "body{font:14px/1.4 system-ui,sans-serif;margin:2rem;max-width:72rem}pre{white-space:pre-wrap}"
    "td,th{padding:.1rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}</style>"
)


class _Output(Protocol):
    def write(self, msg: str) -> object: ...


def add_options(parser: CommandParser, *, html: bool = True) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report for machines")
    if html:
        parser.add_argument("--html", type=Path, metavar="FILE", help="write the report for people, one file")


def seed(options: Mapping[str, Any], output: _Output) -> int:
    """Return the seed that was asked for, or a new one, and print it."""
    found = options["seed"] if options["seed"] is not None else random.SystemRandom().randrange(10**9)
    output.write(f"Seed {found}.")
    return int(found)


def write(options: Mapping[str, Any], found: Found, *, title: str = "", drawn: Found | None = None) -> None:
    """Write the wanted files. `drawn` is what only the page shows. Raises CommandError where one cannot be written."""
    texts: dict[str, Callable[[], str]] = {
        "json": lambda: json.dumps(found, indent=1, ensure_ascii=False) + "\n",
        "html": lambda: page(title, {**found, **(drawn or {})}),
    }
    for name, text in texts.items():
        if path := options.get(name):
            try:
                path.write_text(text(), encoding="utf-8")
            except OSError as error:
                raise CommandError(f"The report could not be written: {error}") from error


def figures(found: Found) -> Iterator[str]:
    """Yield a line for each figure that is not empty, for people; of many values the number and the first ones."""
    for name, value in found.items():
        if isinstance(value, list) and len(value) > _SHOWN:
            value = f"{len(value):,}, beginning with {value[:_SHOWN]}"
        if value not in ([], {}, "", None):
            yield f"{_name(name)}: {f'{value:,}' if isinstance(value, int | float) else value}"


def judge(found: Found, output: _Output) -> None:
    """Say each promise and the verdict. Raises CommandError where a promise is missed."""
    for promise in found["promises"]:
        output.write(f"{'kept' if promise['kept'] else 'MISSED'}  {promise['sentence']}")
    if not found["holds"]:
        raise CommandError(found["verdict"])
    output.write(found["verdict"])


def page(title: str, found: Found) -> str:
    """Return one page without outside resources: a heading for each figure, and tables for those that have several."""
    sections = format_html_join("", "<h2>{}</h2>{}", ((_name(key), _shown(value)) for key, value in found.items()))
    return format_html(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>{}</title>{}<h1>{}</h1>{}</html>\n',
        title, _STYLE, title, sections,
    )  # fmt: skip


def _shown(value: Any) -> SafeString:
    if isinstance(value, SafeString):
        return value
    if isinstance(value, Mapping):
        return _table([], [[_name(name), one] for name, one in value.items()])
    if isinstance(value, list | tuple) and value and all(isinstance(one, Mapping) for one in value):
        columns = [*dict.fromkeys(name for one in value for name in one)]
        return _table(columns, [[one.get(name, "") for name in columns] for one in value])
    if isinstance(value, list | tuple):
        return format_html("{}", ", ".join(map(str, value)) or "none")
    return format_html("<pre>{}</pre>" if isinstance(value, str) and "\n" in value else "{}", value)


def _table(columns: list[str], rows: list[list[Any]]) -> SafeString:
    head = format_html_join("", "<th>{}</th>", ((_name(name),) for name in columns))
    cells = ((format_html_join("", "<td>{}</td>", ((_shown(cell),) for cell in row)),) for row in rows)
    return format_html("<table><tr>{}</tr>{}</table>", head, format_html_join("\n", "<tr>{}</tr>", cells))


def _name(key: object) -> str:
    return str(key).replace("_", " ")
