"""Write the report of an experiment, say its promises, and fail where one is not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from django.core.management.base import CommandError, CommandParser

Found = Mapping[str, Any]  # with `promises`, each with `kept` and `sentence`, and with `holds` and `verdict`


class _Output(Protocol):
    def write(self, msg: str) -> object: ...


def add_options(parser: CommandParser) -> None:
    """Let a command take the names of two files, `json` and `html`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report for machines")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report for people, one file")


def conclude(
    found: Found,
    output: _Output,
    options: Mapping[str, Any],
    *,
    to_json: Callable[[Found], str],
    to_html: Callable[[Found], str],
) -> None:
    """Write the wanted files, and say each promise. Raises CommandError where one is missed or a file fails."""
    for path, make in ((options["json"], to_json), (options["html"], to_html)):
        if path:
            try:
                path.write_text(make(found), encoding="utf-8")
            except OSError as error:
                raise CommandError(f"The report could not be written: {error}") from error
    for promise in found["promises"]:
        output.write(f"{'kept' if promise['kept'] else 'MISSED'}  {promise['sentence']}")
    if not found["holds"]:
        raise CommandError(found["verdict"])
    output.write(found["verdict"])
