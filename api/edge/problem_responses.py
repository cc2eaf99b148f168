"""Say what is wrong in one form, `application/problem+json`, with a code that programs can go by.

Codes are stable; sentences are for people, and change. Source: RFC 9457, "Problem Details for HTTP APIs".
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpResponse
from pydantic import BaseModel, ConfigDict, Field

from portal.dynamo.paging import BadCursor
from portal.errors import (
    Conflict,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    PortalError,
    Throttled,
    TransactionRefused,
    Unavailable,
)

log = logging.getLogger("pooldesk.api")

CONTENT_TYPE: Final = "application/problem+json"
MOST_ERRORS: Final = 20  # that are told of at once
_TYPE: Final = "urn:pooldesk:problem:"
# The status and the code of each kind of error that has none of its own; the first that fits.
_KINDS: Final[tuple[tuple[type[PortalError], int, str], ...]] = (
    (Invalid, 422, "invalid"),
    (NotFound, 404, "not_found"),
    (Forbidden, 403, "forbidden"),
    (LimitReached, 429, "rate_limited"),
    (Throttled, 503, "busy"),
    (TransactionRefused, 503, "busy"),  # by others at work on the same; a rule explains what it was asked to do itself
    (Unavailable, 503, "unavailable"),
    (Conflict, 409, "conflict"),
)


# What a program goes by, by status: all that there are.
CODES: Final[Mapping[int, tuple[str, ...]]] = {
    400: (
        "malformed_json",
        "duplicate_member",
        "too_many_members",
        "nested_too_deeply",
        "number_out_of_range",
        "unreadable",
    ),
    401: ("key_missing", "key_malformed", "key_unknown", "key_revoked", "key_expired"),
    403: (
        "scope_missing",
        "address_not_allowed",
        "tenant_suspended",
        "tenant_closing",
        "origin_not_allowed",
        "tls_required",
        "forbidden",
    ),
    404: ("not_found",),
    405: ("method_not_allowed",),
    409: (
        "edit_conflict",
        "bulk_refused",
        "comment_not_added",
        "comment_conflict",
        "not_mergeable",
        "shortcut_taken",
        "file_not_arrived",
        "file_not_readable",
        "ticket_set_aside",
        "conflict",
        "idempotency_in_progress",
    ),
    412: ("precondition_failed",),
    413: ("unreadable",),
    415: ("content_type", "unreadable"),
    422: ("invalid", "unknown_parameter", "duplicate_parameter", "address_taken", "idempotency_key_reused"),
    429: ("rate_limited", "too_many_at_once", "too_many_attempts"),
    500: ("internal",),
    503: ("busy", "being_moved", "unavailable"),
}


class FieldProblem(BaseModel):
    """Say what is wrong with one member of the request. `field` is its path, with dots."""

    field: str
    code: str
    detail: str


class Problem(BaseModel):
    """Say what is wrong with a request. `field` names the member or parameter, where it is about one of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "urn:pooldesk:problem:not_found",
                "title": "Not Found",
                "status": 404,
                "detail": "There is no ticket 7.",
                "code": "not_found",
                "request_id": "0d4ff6f2b7ab4d0a9c3e1a6d2f7c9b10",
            }
        }
    )

    type: str = Field(description="a URN that ends with the code")
    title: str
    status: int
    detail: str = Field(description="a sentence for people; it may change")
    code: str = Field(description="stable, for programs; each status says which ones it has")
    request_id: str
    field: str | None = None
    errors: list[FieldProblem] | None = Field(None, description=f"the first {MOST_ERRORS} at most")
    current: dict[str, Any] | None = Field(None, description="what is stored now, where the request built on less")


class RequestProblem(PortalError):
    """A request that the API does not take. `more` goes into the problem, `headers` beside it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str = "",
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        passes: bool = False,
    ) -> None:
        super().__init__(message)
        self.passes = passes
        self.status, self.code, self.field = status, code, field
        self.more, self.headers = more or {}, headers or {}


def of(error: PortalError, request_id: str) -> HttpResponse:
    status, code = _kind(error)
    more = dict(getattr(error, "more", {}))
    if field := "after" if isinstance(error, BadCursor) else getattr(error, "field", None):
        more["field"] = field
    headers = dict(getattr(error, "headers", {}))
    if status in (429, 503):
        headers["Retry-After"] = str(getattr(error, "retry_after", 1))
    if status >= 500:
        log.warning("%s: %s (%s)", code, error.message, type(error.__cause__).__name__)
    return response(status, code, error.message, request_id=request_id, more=more, headers=headers)


def _kind(error: PortalError) -> tuple[int, str]:
    """Return the status and the code of an error; what nobody expected is a fault of ours."""
    own: str = getattr(error, "code", "")
    for kind, status, code in _KINDS:
        if isinstance(error, kind):
            return status, own or code
    return (error.status, own) if own else (500, "internal")


def invalid(errors: Sequence[FieldProblem], request_id: str) -> HttpResponse:
    """Return the problem of a request that does not fit its schema; there is at least one error.

    Of many the first MOST_ERRORS are told.
    """
    first = errors[0]
    more = {"field": first.field, "errors": [error.model_dump() for error in errors[:MOST_ERRORS]]}
    return response(422, "invalid", f"{first.field}: {first.detail}", request_id=request_id, more=more)


def response(
    status: int,
    code: str,
    detail: str,
    *,
    request_id: str,
    more: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Return a problem as it is sent. In ASCII, since a name that somebody sent may hold what UTF-8 cannot."""
    body = {
        "type": _TYPE + code,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
        **(more or {}),
    }
    return HttpResponse(json.dumps(body), status=status, content_type=CONTENT_TYPE, headers=dict(headers or {}))
