"""Parse what is written behind the options of commands. All of these raise ArgumentTypeError with what is wanted."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

from portal.dynamo.placement import Placement


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers within these bounds, in ASCII digits."""

    def parse(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise ArgumentTypeError(f"must be a whole number: {text!r}")
        if int(text) < least:
            raise ArgumentTypeError(f"must be {least} or more")
        if most is not None and int(text) > most:
            raise ArgumentTypeError(f"must be {most:,} or less")
        return int(text)

    return parse


def number(least: float, most: float, what: str) -> Callable[[str], float]:
    """Return a parser of decimal numbers within these bounds. `what` names them: "a number of seconds"."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise ArgumentTypeError(f"must be {what}")
        return value

    return parse


seconds = number(0, 86_400, "a number of seconds, up to a day")


def placement(text: str) -> Placement:
    """Read where a tenant's content shall lie."""
    try:
        return Placement.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
