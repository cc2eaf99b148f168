"""Show the OpenAPI document as a page: its routes by resource, and the shapes that they take and answer."""

from __future__ import annotations

import json
import re
from functools import cache
from http import HTTPStatus
from types import SimpleNamespace as Shown
from typing import Any, Final

from api.documents import openapi

Json = dict[str, Any]

_REF: Final = "#/components/schemas/"
_BOUNDS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
}


@cache
def reference() -> Json:
    """Return what the page shows. The same one for the life of the process, as the document is."""
    document = openapi.document()
    groups: dict[str, Shown] = {}
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            name = told["tags"][0]
            groups.setdefault(name, Shown(name=name, routes=[])).routes.append(_route(method, path, told))
    used = _used(document)
    shapes = [_shape(name, told) for name, told in sorted(document["components"]["schemas"].items()) if name in used]
    return {"groups": list(groups.values()), "shapes": shapes}


def _route(method: str, path: str, told: Json) -> Shown:
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    name = body.get("$ref", "").removeprefix(_REF)
    return Shown(
        id=told["operationId"],
        method=method.upper(),
        path=path,
        summary=told["summary"],
        # A docstring of one line is both.
        description="" if (said := told.get("description", "")).rstrip(".") == told["summary"] else said,
        scope=told["x-scope"],
        parameters=tuple(
            _value(
                p["name"], p["in"], _sendable(p["schema"]), is_required=p["required"], summary=p.get("description", "")
            )
            for p in told.get("parameters", ())
        ),
        body=name,
        example=_example(openapi.document()["components"]["schemas"].get(name, {})),
        answers=tuple(_answer(int(status), answer) for status, answer in sorted(told["responses"].items(), key=str)),
    )


def _answer(status: int, told: Json) -> Shown:
    content: Json = next(iter(told.get("content", {}).values()), {})
    shape = content.get("schema", {}).get("$ref", "").removeprefix(_REF)
    return Shown(status=status, phrase=HTTPStatus(status).phrase, shape=shape)


def _shape(name: str, told: Json) -> Shown:
    required = told.get("required", ())
    return Shown(
        name=name,
        summary=told.get("description", ""),
        members=tuple(
            _value(member, "body", schema, is_required=member in required, summary=schema.get("description", ""))
            for member, schema in told.get("properties", {}).items()
        ),
        words=tuple(map(str, told.get("enum", ()))),
        example=_example(told),
    )


def _value(name: str, place: str, schema: Json, *, is_required: bool, summary: str) -> Shown:
    bounds = [words.format(part[key]) for part in _parts(schema) for key, words in _BOUNDS.items() if key in part]
    bounds += _default(schema)
    shapes = _shapes(schema)
    schemas = openapi.document()["components"]["schemas"]
    choices = [choice for part in _parts(schema) for choice in part.get("enum", ())]
    choices += [choice for shape in shapes for choice in schemas[shape].get("enum", ())]
    sentence = "; ".join([*([summary] if summary else []), *bounds])
    return Shown(
        name=name,
        place=place,
        type=_linked(_type(schema), shapes),
        is_required=is_required,
        summary=sentence,
        choices=tuple(map(str, choices)),
    )


def _sendable(schema: Json) -> Json:
    """Return the schema of a parameter without null: nothing can be sent as null there, it is left out."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    rest = {key: told for key, told in schema.items() if key != "anyOf"}
    return rest | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds}) if kinds else schema


def _default(schema: Json) -> list[str]:
    default = schema.get("default")
    return [] if default is None else [f"{default if default != '' else 'empty'} where it is left out"]


def _linked(words: str, shapes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the words of a type in pieces, each with the name of the shape that it is, "" for none."""
    pieces = re.split(rf"\b({'|'.join(shapes)})\b", words) if shapes else [words]
    return tuple((piece, piece if piece in shapes else "") for piece in pieces if piece)


def _parts(schema: Json) -> list[Json]:
    return [schema, *schema.get("anyOf", ())]


def _shapes(schema: Json) -> tuple[str, ...]:
    inner = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
    inner += [
        schema[key] for key in ("items", "additionalProperties", "propertyNames") if isinstance(schema.get(key), dict)
    ]
    own = [schema["$ref"].removeprefix(_REF)] if "$ref" in schema else []
    return tuple(dict.fromkeys([*own, *(name for one in inner for name in _shapes(one))]))


def _type(schema: Json) -> str:
    """Return a schema's type in words."""
    if "$ref" in schema:
        return str(schema["$ref"].removeprefix(_REF))
    for several in ("anyOf", "allOf"):
        if several in schema:
            return " or ".join(map(_type, schema[several]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        names = schema.get("propertyNames")
        by = f" by {_type(names)}" if isinstance(names, dict) else ""
        return f"object of {_type(inner)}{by}" if isinstance(inner, dict) else "object"
    return str(schema.get("format") or schema.get("type") or "anything")


def _example(told: Json) -> str:
    return json.dumps(told["example"], indent=2, ensure_ascii=False) if "example" in told else ""


def _used(document: Json) -> set[str]:
    """Return the shapes that stand in a body or an answer: those of a query are shown as its parameters."""
    schemas = document["components"]["schemas"]
    waiting = [
        name
        for methods in document["paths"].values()
        for told in methods.values()
        for place in (told.get("requestBody", {}), *told["responses"].values())
        for content in place.get("content", {}).values()
        for name in _shapes(content["schema"])
    ]
    used: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += [n for schema in schemas[name].get("properties", {}).values() for n in _shapes(schema)]
    return used
