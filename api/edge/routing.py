"""Declare the routes of the API: each by its method, its scope and what it answers, all with the same problems.

The JSON of a request is read strictly: what one reader takes in one way and the next in another is refused. That is
another content type, another encoding than UTF-8, a member that stands twice in one object, numbers that no computer's
number holds, deep nesting, and objects of very many members, each with its place where it has one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import URLPattern, URLResolver
from ninja import NinjaAPI, Router
from ninja.errors import HttpError
from ninja.errors import ValidationError as Unfitting
from ninja.parser import Parser
from pydantic import BaseModel

from api.edge import problem_responses, sentences
from api.edge.problem_responses import FieldProblem, RequestProblem
from portal.errors import NotFound, PortalError
from portal.schema.access_patterns import cost
from portal.web import access
from tenants.api_keys.key_authentication import ApiCaller
from tenants.api_keys.scopes import Scope
from tenants.tenancy.context import TenantContext

# --- headers of answers, for the document ---


_TEXTS: Final = {
    "ETag": "the tag of what is sent, or of what is stored; for If-None-Match and If-Match",
    "Idempotency-Replayed": "true where the request was done before, and this is the answer of then",
    "Link": "the address of the next page, as rel=next; not on the last one",
    "Location": "the address of what was made",
    "RateLimit": "the units that are left at the process that answers, and the seconds until there are more",
    "RateLimit-Policy": "the units that the desk may take at once after a rest, and in how many seconds they come back",
    "Retry-After": "the seconds after which to send it again",
    "WWW-Authenticate": "how to come with a key, or which scope is missing",
    "X-Request-Id": "finds the request in our log",
}
_REF: Final = "#/components/headers/"
_RATE: Final = ("RateLimit", "RateLimit-Policy")
_BY_STATUS: Final[Mapping[int, tuple[str, ...]]] = {
    401: ("WWW-Authenticate",),
    403: ("WWW-Authenticate",),
    412: ("ETag",),
    429: ("Retry-After", *_RATE),
    503: ("Retry-After",),
}

COMPONENTS: Final = {name: {"description": text, "schema": {"type": "string"}} for name, text in _TEXTS.items()}


def answer_headers(status: int, *more: str) -> dict[str, Any]:
    """Return the headers of answers with this status, and those that this route sends with it."""
    usual = _RATE if status < 400 else _BY_STATUS.get(status, ())
    return {name: {"$ref": _REF + name} for name in sorted({"X-Request-Id", *usual, *more})}


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


# --- routes ---


_KEPT: Final = (403, 404, 409, 422)  # problems that a repetition gets again
_ALWAYS: Final = (400, 401, 403, 422, 429, 500, 503)  # that any route may answer

access.declare_level_cost("api", cost(get="API key, tenant", write="API key", trips=1, reads=2, writes=2))

RouteView = Callable[..., HttpResponse]


class ApiRequest(HttpRequest):
    """A request that was let in. Read and show by `tenant`; do what the route's scope is for as `acting`."""

    caller: ApiCaller
    tenant: TenantContext
    acting: TenantContext
    request_id: str


@dataclass(frozen=True)
class ApiRoute:
    """Declare one method of an address: its scope, and the names of parameters in its query."""

    scope: Scope
    parameters: frozenset[str]


class ApiRouter(Router):
    def declare(
        self,
        method: str,
        path: str,
        *,
        scope: Scope,
        answers: Mapping[int, type[BaseModel] | None],
        problems_too: tuple[int, ...] = (),
        headers: Mapping[str, Mapping[str, Any]] | None = None,
        sends: Mapping[int, tuple[str, ...]] | None = None,
    ) -> Callable[[RouteView], RouteView]:
        """Make a function the answer to a method and path. It takes an ApiRequest and returns an HttpResponse.

        `answers` are the bodies by status, None for no body; `problems_too` are statuses of problems beside those that
        any route has; `headers` are header parameters with what the document says of them; `sends` are headers of
        answers, beside those that any has. The function's docstring is its description, and its first line its summary.
        """
        written = {404, 409, 413, 415} if method != "GET" else {404} if "{" in path else set()
        statuses = sorted({*_ALWAYS, *problems_too, *written})
        later = {409: ("Retry-After",)} if method == "POST" else {}  # while the same request is at work
        replayed = ("Idempotency-Replayed",) if "Idempotency-Key" in (headers or {}) else ()

        def declared(view: RouteView) -> RouteView:
            summary, _, description = (view.__doc__ or "").partition("\n\n")
            parameters = [
                {"in": "header", "name": name, "required": False, "schema": {"type": "string"}, **told}
                for name, told in (headers or {}).items()
            ]
            extra: dict[str, Any] = {
                "responses": _responses(statuses, answers, later | dict(sends or {}), replayed),
                "security": [{"ApiKey": []}],
                "x-scope": scope.value,
            }
            if parameters:
                extra["parameters"] = parameters
            view.scope = scope  # type: ignore[attr-defined]  # read by RoutedApi
            return self.api_operation(
                [method],
                path,
                response=dict(answers),
                by_alias=True,
                operation_id=view.__name__,
                summary=" ".join(summary.split()).rstrip("."),
                description=" ".join(description.split()) or None,
                openapi_extra=extra,
            )(view)

        return declared


def _responses(
    problem_statuses: Sequence[int],
    answers: Mapping[int, Any],
    sends: Mapping[int, tuple[str, ...]],
    replayed: tuple[str, ...],
) -> dict[int, dict[str, Any]]:
    """Return what the document says of answers: of problems all, of others their headers, to which ninja adds."""
    told: dict[int, dict[str, Any]] = {status: {} for status in answers}
    for status in problem_statuses:
        codes = ", ".join(problem_responses.CODES[status])
        content = {problem_responses.CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        told.setdefault(status, {"description": f"Problem, by its code: {codes}", "content": content})
    for status, said in told.items():
        tagged = ("ETag",) if 304 in answers and status in (200, 304) else ()
        kept = replayed if status in answers or status in _KEPT else ()
        said["headers"] = answer_headers(status, *tagged, *kept, *sends.get(status, ()))
    return told


class RoutedApi(NinjaAPI):
    """A version of the API: its routes alone. Its schema is made by `get_openapi_schema`, without an address."""

    def __init__(self, **about: Any) -> None:
        super().__init__(parser=StrictParser(), openapi_url=None, docs_url=None, **about)
        self.add_exception_handler(Unfitting, _unfitting)
        self.add_exception_handler(HttpError, _raised_again)
        self.add_exception_handler(Exception, _raised_again)

    def _get_urls(self) -> list[URLResolver | URLPattern]:
        """Return a route for each path. Its view says who may call it, and what the middleware has to know."""
        patterns: list[URLResolver | URLPattern] = []
        for router in self._get_bound_routers():
            views = list(router.path_operations.values())
            made = router.urls_paths(router.prefix)
            for view in views:
                # django-ninja makes as many patterns of a path as it has methods, each of which answers them all.
                pattern, *_ = [next(made) for _ in view.operations]
                routes = {
                    method: ApiRoute(operation.view_func.scope, _names(operation))  # type: ignore[attr-defined]
                    for operation in view.operations
                    for method in operation.methods
                }
                callback = access.api(pattern.callback, {m: route.scope.value for m, route in routes.items()})
                callback.api_routes = routes  # type: ignore[attr-defined]  # read by the middleware
                for operation in view.operations:
                    for declared in getattr(operation.view_func, "costs", {}).values():
                        for method in operation.methods:
                            access.declare_cost(declared, on=method, module=operation.view_func.__module__)(callback)
                patterns.append(pattern)
        return patterns


def _names(operation: Any) -> frozenset[str]:
    models = [m for m in operation.models if m.__ninja_param_source__ == "query"]
    return frozenset(name for model in models for name in model.__ninja_flatten_map__)


def _raised_again(request: HttpRequest, error: Any) -> HttpResponse:
    """Answer in our form: django-ninja wraps what the parser raises."""
    if isinstance(error, HttpError) and isinstance(error.__cause__, PortalError):
        raise error.__cause__
    raise error


def _unfitting(request: HttpRequest, error: Any) -> HttpResponse:
    said: str = request.request_id  # type: ignore[attr-defined]  # an ApiRequest
    if any(found["loc"][0] == "path" for found in error.errors):
        return problem_responses.of(NotFound("There is nothing at this address."), said)
    return problem_responses.invalid(
        [_field_problem(found) for found in error.errors[: problem_responses.MOST_ERRORS]], said
    )


def _field_problem(found: Mapping[str, Any]) -> FieldProblem:
    # The first two parts say where it comes from, and the name of the function's argument.
    places = [str(place)[:100] for place in found["loc"]]
    if places[0] == "body" and len(places) == 2 and found["type"] == "missing":
        return FieldProblem(field="body", code="missing", detail="This needs a body in JSON.")
    field = ".".join(places[2:]) or (places[0] if places[0] == "body" else places[-1])
    return FieldProblem(field=field, code=str(found["type"]), detail=sentences.of(found))


__all__ = ["ApiRequest", "ApiRoute", "ApiRouter", "RequestProblem", "RoutedApi"]
