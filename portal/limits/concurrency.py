"""Bound what of one tenant is at work at the same time in this process. What is over it is refused, not queued."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from portal.tenant_places import TenantPlaces

_threads: int | None = None


def serve_with(threads: int) -> None:
    """Take note of how many threads this process answers requests with, where that is not WEB_THREADS."""
    global _threads
    _threads = threads


def _half_of_the_threads() -> int:
    return max(1, (_threads or settings.WEB_THREADS) // 2)


requests: Final = TenantPlaces(_half_of_the_threads)
heavy: Final = TenantPlaces(lambda: settings.HEAVY_AT_A_TIME)  # bulk changes, exports and the like
