"""Serve what describes the API, to anybody."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.gzip import gzip_page

from api.documents import openapi, presenters
from api.edge import answers
from portal.web.access import on_get, public


@public
@on_get()
@gzip_page
def schema(request: HttpRequest) -> HttpResponse:
    body = openapi.text()
    response = answers.unless_known(request, answers.answer(body), answers.tag(body))
    response["Cache-Control"] = "public, max-age=300"
    response["Access-Control-Allow-Origin"] = "*"
    return response


@public
@on_get()
def reference(request: HttpRequest) -> HttpResponse:
    """Show the document as a page whose forms call the API."""
    addresses = {"schema_url": reverse("api:schema"), "base_url": request.build_absolute_uri(openapi.ADDRESS)}
    return render(request, "api/reference.html", presenters.reference() | addresses)
