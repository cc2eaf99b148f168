"""Make the OpenAPI document of a version of the API from its routes. Source: OpenAPI Specification 3.1.0."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from ninja.openapi.schema import REF_TEMPLATE

from api.edge import routing
from api.edge.problem_responses import Problem
from api.v1.version import version_1

ADDRESS: Final = "/api/v1/"


@cache
def document() -> dict[str, Any]:
    """Return the document of version 1; the same one for the life of the process."""
    made = dict(version_1.get_openapi_schema(path_prefix=ADDRESS.lstrip("/")))
    problem = Problem.model_json_schema(ref_template=REF_TEMPLATE)
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update(problem.pop("$defs", {}) | {"Problem": problem})
    components["headers"] = routing.COMPONENTS
    components["securitySchemes"] = {
        "ApiKey": {"type": "http", "scheme": "bearer", "description": "An API key of the desk: sk_…"}
    }
    return made


@cache
def text() -> bytes:
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()
