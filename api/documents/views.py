"""Serve what describes the API, to anybody."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from api.documents import openapi
from api.door import answers
from portal.web.access import public


@public
@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """Send the OpenAPI document."""
    body = openapi.text()
    response = answers.unless_known(request, answers.answer(body), answers.tag(body))
    response["Cache-Control"] = "public, max-age=300"
    response["Access-Control-Allow-Origin"] = "*"
    return response
