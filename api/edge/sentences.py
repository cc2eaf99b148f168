"""Say in sentences what does not fit a schema, in words of JSON: pydantic's own name classes, types and patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_PATTERN: Final = "string_pattern_mismatch"
# By pydantic's name of what is wrong; in braces its values.
_SENTENCES: Final = {
    "missing": "This is missing.",
    "extra_forbidden": "Unknown field.",
    "string_type": "This needs a text.",
    "string_unicode": "This text holds a character that UTF-8 does not have.",
    "string_too_long": "This is too long: {max_length:,} characters are allowed.",
    "string_too_short": "This is too short: {min_length:,} or more characters are needed.",
    "list_type": "This needs a list.",
    "too_long": "These are too many: {max_length:,} are allowed.",
    "too_short": "These are too few: {min_length:,} or more are needed.",
    "greater_than_equal": "This must be {ge:,} or more.",
    "less_than_equal": "This must be {le:,} or less.",
    "int_parsing_size": "This number is too large.",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "This needs a whole number."),
    **dict.fromkeys(("enum", "literal_error"), "This must be {expected}."),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "This needs an object."),
}
_OURS: Final = ("value_error", _PATTERN)  # which come with a sentence of ours
_ANY_OTHER: Final = "This is not what the document of the API asks for here."


@dataclass(frozen=True)
class TextPattern:
    """Hold a text in a schema to a pattern from `^` to `$`, and say the sentence where it is written otherwise."""

    pattern: str
    sentence: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        whole = re.compile(self.pattern.removesuffix("$") + r"\Z")

        def check(text: str) -> str:
            if not whole.match(text):
                raise PydanticCustomError(_PATTERN, "{sentence}", {"sentence": self.sentence})
            return text

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema) | {"pattern": self.pattern}


def of(found: Mapping[str, Any]) -> str:
    kind, values = str(found["type"]), dict(found.get("ctx", {}))
    if kind in _OURS:
        return str(found["msg"]).removeprefix("Value error, ")
    if "expected" in values:
        values["expected"] = str(values["expected"]).replace("'", "")
    return _SENTENCES.get(kind, _ANY_OTHER).format(**values)
