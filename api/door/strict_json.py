"""Read the JSON of a request strictly: what one reader takes in one way and the next in another is refused.

Refused are another content type, another encoding than UTF-8, a member that stands twice in one object, numbers that
no computer's number holds, deep nesting, and objects of very many members, each with its place where it has one.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from django.http import HttpRequest, QueryDict
from ninja.parser import Parser

from api.door.problems import RequestProblem

NESTING: Final = 16  # objects and lists inside each other
DIGITS: Final = 40  # of a whole number; the longest that anything takes has 15
MEMBERS: Final = 200  # of one object; no schema has a tenth of them, and each wrong one would be told of
_MEDIA: Final = "application/json"


class StrictParser(Parser):
    """Reads bodies and queries for django-ninja. Its errors are RequestProblem."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type != _MEDIA:
            raise RequestProblem(
                415,
                "content_type",
                f"Send the body as {_MEDIA}, and say so in the header Content-Type.",
                headers={"Accept-Post": _MEDIA},
            )
        return parse(request.body)

    def parse_querydict(self, data: QueryDict, list_fields: list[str], request: HttpRequest) -> dict[str, Any]:  # type: ignore[override]
        for name, values in data.lists():
            if len(values) > 1:
                raise RequestProblem(422, "duplicate_parameter", "This parameter stands there twice.", field=name)
        return data.dict()


def parse(body: bytes) -> Any:
    """Return what a JSON text says. Raises RequestProblem with status 400."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _malformed(f"The body is not UTF-8: byte {error.start + 1} cannot stand there.") from error
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_whole, parse_float=_float, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise _malformed(f"The body is no JSON: line {error.lineno}, column {error.colno}: {error.msg}.") from error
    except RecursionError as error:
        raise _too_deep() from error
    if text.count("{") + text.count("[") > NESTING and _depth(value) > NESTING:
        raise _too_deep()
    return value


def _malformed(sentence: str) -> RequestProblem:
    return RequestProblem(400, "malformed_json", sentence)


def _too_deep() -> RequestProblem:
    return RequestProblem(400, "nested_too_deeply", f"Nest objects and lists at most {NESTING} deep.")


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members) > MEMBERS:
        raise RequestProblem(400, "too_many_members", f"An object has more than {MEMBERS} members.")
    found: dict[str, Any] = {}
    for name, value in members:
        if name in found:
            raise RequestProblem(400, "duplicate_member", "This member stands twice in one object.", field=name[:100])
        found[name] = value
    return found


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise RequestProblem(400, "number_out_of_range", f"A number has more than {DIGITS} digits.")
    return int(digits)


def _float(text: str) -> float | int:
    """Read 24.0 and 2.4e1 as the whole number that JSON Schema takes them for, up to what a float holds exactly."""
    number = float(text)
    if not math.isfinite(number):
        raise RequestProblem(400, "number_out_of_range", "A number is too large.")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _constant(name: str) -> Any:
    raise _malformed(f"The body is no JSON: {name} is no number there.")


def _depth(value: Any) -> int:
    """Return how many objects and lists lie inside each other, without recursion."""
    depth, level = 0, [value]
    while level := [v for v in level if isinstance(v, dict | list)]:
        depth += 1
        level = [inner for v in level for inner in (v.values() if isinstance(v, dict) else v)]
    return depth
