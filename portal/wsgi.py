"""The WSGI application that gunicorn serves."""

from __future__ import annotations

import os
from typing import Any, cast

import django
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")


class PortalRequest(WSGIRequest):
    """A request whose Content-Type may hold anything.

    Django raises ValueError for a parameter in a character set that does not exist, before any middleware could answer.
    """

    def _set_content_type_params(self, meta: Any) -> None:
        try:
            super()._set_content_type_params(meta)  # type: ignore[misc]  # of HttpRequest, missing in the stubs
        except ValueError:
            self.content_type, self.content_params = "", {"charset": "unknown"}  # refused by middleware.py


class Application(WSGIHandler):
    """Django's own handler, with our requests, and no body behind the head that a HEAD asks for.

    Neither Django nor waitress takes the body away, and a client would read it as the next answer of its connection.
    """

    request_class = PortalRequest

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = super().get_response(request)
        if request.META["REQUEST_METHOD"] == "HEAD":
            _remove_content(response)
        return response


def _remove_content(response: HttpResponseBase) -> None:
    """Leave the headers, and the length that an answer to GET would have where it is known."""
    if isinstance(response, StreamingHttpResponse):
        response.streaming_content = ()  # what it would have read is closed with the response
        return
    whole = cast("HttpResponse", response)
    if "Content-Length" not in whole:
        whole["Content-Length"] = str(len(whole.content))
    whole.content = b""


django.setup(set_prefix=False)
# Imported once Django is set up. It reads all routes now, and not while the first visitor waits.
from portal.web import checks  # noqa: E402

checks.refuse_undeclared()
application = Application()
