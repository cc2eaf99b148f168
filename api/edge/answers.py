"""Write answers: JSON as the models of schemas say it, lists with the way to their next page, tags of what is sent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final, Self

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, model_validator

from api.edge.problem_responses import RequestProblem

CONTENT_TYPE: Final = "application/json"
_PATTERN: Final = r'^(\*|(W/)?"[^"]*"(\s*,\s*(W/)?"[^"]*")*)$'
_TAGS: Final = re.compile(_PATTERN.removesuffix("$") + r"\Z")
# Headers, as routes declare them.
KNOWN: Final = {
    "If-None-Match": {"description": "the tag of what the caller has: the answer is 304 where it is still the same"}
}
MATCH: Final = {
    "If-Match": {
        "description": "the tag of what the caller saw: the answer is 412 where it has changed since",
        "schema": {"type": "string", "pattern": _PATTERN, "examples": ['"0c2f5733f02a4ed8a7645f66"']},
    }
}
_TAG: Final = re.compile(r'"[^"]*"')


class ApiModel(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True)

    @classmethod
    def of_attributes(cls, source: object, **values: Any) -> Self:
        """Make it of what is stored under the same names, and of these values."""
        return cls(**{name: getattr(source, name) for name in cls.model_fields if name not in values} | values)


class ApiQuery(BaseModel):
    """The parameters of an address, which are texts."""

    model_config = ConfigDict(extra="forbid")


class ApiInput(BaseModel):
    """Something that the API is sent: as its schema says and not otherwise, so that no mistake passes for a wish."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ApiChange(ApiInput):
    """Fields that are to change, at least one."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("Name at least one field to change.")
        return self


def encoded(model: BaseModel) -> bytes:
    return model.model_dump_json().encode()


def answer(content: BaseModel | bytes, *, status: int = 200, **headers: str) -> HttpResponse:
    """Return an answer. Headers are given by name, with `_` for `-`."""
    body = content if isinstance(content, bytes) else encoded(content)
    response = HttpResponse(body, status=status, content_type=CONTENT_TYPE)
    for name, value in headers.items():
        response[name.replace("_", "-")] = value
    return response


def page(content: Any) -> HttpResponse:
    """Return a page of a list, with the way to the next one, `content.next`, also in a header."""
    response = answer(content)
    if content.next:
        response["Link"] = f'<{content.next}>; rel="next"'
    return response


def next_url(request: HttpRequest, after: str | None) -> str | None:
    """Return the address of the same list behind a cursor, None for no cursor."""
    if after is None:
        return None
    params = request.GET.copy()
    params["after"] = after
    return f"{request.path}?{params.urlencode()}"


# --- tags ---


def tag(*parts: object) -> str:
    """Return the tag of a representation that follows from these values."""
    text = "\0".join(map(str, parts))
    return f'"{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'


def unless_known(request: HttpRequest, response: HttpResponse, etag: str) -> HttpResponse:
    """Return the response with its tag, or 304 where the caller has this representation already."""
    known = request.headers.get("If-None-Match")
    if known is not None and _names(known, etag):
        response = HttpResponse(status=304)
        del response["Content-Type"]  # of what is not sent
    response["ETag"] = etag
    return response


def tagged(request: HttpRequest, content: BaseModel) -> HttpResponse:
    """Return an answer with the tag of all that is in it, or 304."""
    body = encoded(content)
    return unless_known(request, answer(body), tag(body))


def require_match(request: HttpRequest, etag: str, *, current: Any) -> None:
    """Raise RequestProblem with status 412 and what is stored, where If-Match names another representation.

    With status 422 where it holds no tag.

    A tag that was weakened on its way, by compression say, names the same one: tags are made of what is stored.
    """
    wanted = request.headers.get("If-Match")
    if wanted is None:
        return
    if not _TAGS.match(wanted.strip()):
        raise RequestProblem(422, "invalid", "Send an ETag as it came, with its quotation marks.", field="If-Match")
    if not _names(wanted, etag):
        raise RequestProblem(
            412,
            "precondition_failed",
            "It was changed since you read it. What is stored now is in `current`.",
            more={"current": current},
            headers={"ETag": etag},
        )


def _names(header: str, etag: str) -> bool:
    return header.strip() == "*" or etag in tags_in(header)


def tags_in(header: str) -> Sequence[str]:
    """Return the tags in a header such as If-Match, without what tells weak ones."""
    return _TAG.findall(header)
