"""The WSGI application that gunicorn serves."""

from __future__ import annotations

import os
from typing import Any

import django
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")


class PortalRequest(WSGIRequest):
    """A request whose Content-Type may hold anything.

    Django raises ValueError for a parameter in a character set that does not exist, before any middleware could answer.
    """

    def _set_content_type_params(self, meta: Any) -> None:
        try:
            super()._set_content_type_params(meta)  # type: ignore[misc]  # of HttpRequest, missing in the stubs
        except ValueError:
            self.content_type, self.content_params = "", {"charset": "unknown"}  # refused by request_limits.py


class Application(WSGIHandler):
    """Django's own handler, with our requests."""

    request_class = PortalRequest


django.setup(set_prefix=False)
application = Application()
