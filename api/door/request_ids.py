"""Name each request, so that an answer can be found in the log: by the name that the caller gave it, or a new one."""

from __future__ import annotations

import re
import uuid
from typing import Final

from django.http import HttpRequest

_GIVEN: Final = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")


def of(request: HttpRequest) -> str:
    """Return the request's id: that of its header X-Request-Id where it is 8 to 64 plain characters."""
    given: str = request.headers.get("X-Request-Id", "")
    return given if _GIVEN.match(given) else uuid.uuid4().hex
