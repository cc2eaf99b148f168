"""Bound what of one tenant is at work at the same time in this process. What is over it is refused, not queued."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from portal.tenant_places import TenantPlaces


def _half_of_the_threads() -> int:
    return max(1, settings.WEB_THREADS // 2)


requests: Final = TenantPlaces(_half_of_the_threads)
heavy: Final = TenantPlaces(lambda: settings.HEAVY_AT_A_TIME)  # bulk changes, exports and the like
