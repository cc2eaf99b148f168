"""Let a tenant have a few heavy requests at work at the same time in this process; refuse more at once, with 429."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import wraps
from typing import Any, cast

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import gettext as _

from portal.load import measurement, tenant_limiter
from portal.load.measurement import NoiseTally
from portal.load.tenant_limiter import TooHeavy
from portal.web.access import SAFE

_View = Callable[..., Any]


def heavy(view: _View) -> _View:
    """Count the view's unsafe requests as heavy work of the pinned tenant, until their answers have been sent."""
    return _bounded(view, free=SAFE)


def heavy_to_read(view: _View) -> _View:
    """Count all requests of a view so whose work is done to read, too."""
    return _bounded(view, free=())


def _bounded(view: _View, *, free: Collection[str]) -> _View:
    @wraps(view)
    def held(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        tenant = getattr(request, "tenant", None)
        if tenant is None or request.method in free:
            return view(request, *args, **kwargs)
        if not tenant_limiter.heavy.enter(tenant.tenant_id):
            measurement.note(tenant.tenant_id, NoiseTally(refused=1))
            raise TooHeavy(_("This desk has as much heavy work under way as it may have at a time."), retry_after=2)
        with ExitStack() as work:
            work.callback(tenant_limiter.heavy.leave, tenant.tenant_id)
            response = view(request, *args, **kwargs)
            if isinstance(response, StreamingHttpResponse):
                content = cast("Iterator[bytes]", response.streaming_content)
                response.streaming_content = _Held(content, work.pop_all())
            return response

    return held


class _Held:
    """A content that is sent while it is made. Django closes it when it is sent, or when the client has gone."""

    def __init__(self, content: Iterator[bytes], work: ExitStack) -> None:
        self._content, self.close = content, work.close

    def __iter__(self) -> Iterator[bytes]:
        return self._content
