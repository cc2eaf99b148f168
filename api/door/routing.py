"""Declare the routes of the API: each by its method, its scope and what it answers, all with the same problems.

django-ninja reads parameters and bodies and writes the schema. Who may call, and what comes back where something is
wrong, is the door's: a route that names no scope cannot be declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from ninja import NinjaAPI, Router
from ninja.errors import HttpError
from ninja.errors import ValidationError as Unfitting
from pydantic import BaseModel

from api.door import problems, response_headers, sentences
from api.door.problems import FieldProblem, RequestProblem
from api.door.strict_json import StrictParser
from portal.errors import NotFound, PortalError
from portal.web import access
from tenants.api_keys.key_authentication import ApiCaller
from tenants.api_keys.scopes import Scope
from tenants.tenancy.context import TenantContext

_ALWAYS: Final = (400, 401, 403, 422, 429, 500, 503)  # that any route may answer

RouteView = Callable[..., HttpResponse]


class ApiRequest(HttpRequest):
    """A request that was let in. Read and show by `tenant`; do what the route's scope is for as `acting`."""

    caller: ApiCaller
    tenant: TenantContext
    acting: TenantContext
    request_id: str


@dataclass(frozen=True)
class ApiRoute:
    """Tell the door of one method of an address: its scope, and the names of parameters in its query."""

    scope: Scope
    parameters: frozenset[str]


class ApiRouter(Router):
    """The routes of one resource."""

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

        def declared(view: RouteView) -> RouteView:
            summary, _, description = (view.__doc__ or "").partition("\n\n")
            parameters = [
                {"in": "header", "name": name, "required": False, "schema": {"type": "string"}, **told}
                for name, told in (headers or {}).items()
            ]
            extra: dict[str, Any] = {
                "responses": _responses(statuses, answers, later | dict(sends or {})),
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
                operation_id=view.__name__,
                summary=" ".join(summary.split()).rstrip("."),
                description=" ".join(description.split()) or None,
                openapi_extra=extra,
            )(view)

        return declared


def _responses(
    problem_statuses: Sequence[int], answers: Mapping[int, Any], sends: Mapping[int, tuple[str, ...]]
) -> dict[int, dict[str, Any]]:
    """Return what the document says of answers: of problems all, of others their headers, to which ninja adds."""
    told: dict[int, dict[str, Any]] = {status: {} for status in answers}
    for status in problem_statuses:
        codes = ", ".join(problems.CODES[status])
        content = {problems.CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        told.setdefault(status, {"description": f"Problem, by its code: {codes}", "content": content})
    for status, said in told.items():
        tagged = ("ETag",) if 304 in answers and status in (200, 304) else ()
        said["headers"] = response_headers.of(status, *tagged, *sends.get(status, ()))
    return told


class RoutedApi(NinjaAPI):
    """A version of the API: its routes alone. Its schema is made by `get_openapi_schema`, without an address."""

    def __init__(self, **about: Any) -> None:
        super().__init__(parser=StrictParser(), openapi_url=None, docs_url=None, **about)
        self.add_exception_handler(Unfitting, _unfitting)
        self.add_exception_handler(HttpError, _raised_again)
        self.add_exception_handler(Exception, _raised_again)

    def _get_urls(self) -> list[URLResolver | URLPattern]:
        """Return a route for each path. Its view says who may call it, and what the door has to know."""
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
                callback.api_routes = routes  # type: ignore[attr-defined]  # read by the door
                patterns.append(pattern)
        return patterns


def _names(operation: Any) -> frozenset[str]:
    models = [m for m in operation.models if m.__ninja_param_source__ == "query"]
    return frozenset(name for model in models for name in model.__ninja_flatten_map__)


def _raised_again(request: HttpRequest, error: Any) -> HttpResponse:
    """Let the door answer: django-ninja wraps what the parser raises."""
    if isinstance(error, HttpError) and isinstance(error.__cause__, PortalError):
        raise error.__cause__
    raise error


def _unfitting(request: HttpRequest, error: Any) -> HttpResponse:
    said: str = request.request_id  # type: ignore[attr-defined]  # an ApiRequest
    if any(found["loc"][0] == "path" for found in error.errors):
        return problems.of(NotFound("There is nothing at this address."), said)
    return problems.invalid([_field_problem(found) for found in error.errors[: problems.MOST_ERRORS]], said)


def _field_problem(found: Mapping[str, Any]) -> FieldProblem:
    # The first two parts say where it comes from, and the name of the function's argument.
    places = [str(place)[:100] for place in found["loc"]]
    if places[0] == "body" and len(places) == 2 and found["type"] == "missing":
        return FieldProblem(field="body", code="missing", detail="This needs a body in JSON.")
    field = ".".join(places[2:]) or (places[0] if places[0] == "body" else places[-1])
    return FieldProblem(field=field, code=str(found["type"]), detail=sentences.of(found))


__all__ = ["ApiRequest", "ApiRoute", "ApiRouter", "RequestProblem", "RoutedApi"]
