"""Read what all tortures are asked for alike, the seed and a file for the figures, and end them in one way."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from django.core.management.base import CommandError, CommandParser


class _Output(Protocol):
    def write(self, msg: str) -> object: ...


def add_options(parser: CommandParser) -> None:
    """Let a command take a seed and the name of a file for the figures."""
    parser.add_argument("--seed", type=int, metavar="S", help="printed, and a new one each time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures for machines")


def seed_of(options: Mapping[str, Any], output: _Output) -> int:
    """Return the seed that was asked for, or a new one, and say it."""
    seed = options["seed"] if options["seed"] is not None else random.SystemRandom().randrange(10**9)
    output.write(f"Seed {seed}.")
    return int(seed)


def write_figures(found: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Write the figures where they are wanted. Raises CommandError."""
    if options["json"]:
        try:
            options["json"].write_text(json.dumps(found, indent=1), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"The figures could not be written: {error}") from error


def refuse_broken(found: Mapping[str, Any], broken: Sequence[str], output: _Output) -> None:
    """Say each figure that is wrong. Raises CommandError where there is one."""
    for name in broken:
        output.write(f"{name}: {found[name]}")
    if broken:
        raise CommandError(f"Something is wrong: {', '.join(broken)}. Keep the seed.")
