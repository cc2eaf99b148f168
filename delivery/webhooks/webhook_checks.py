"""Check that a production installation sends webhooks to the public internet alone."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks


@checks.register(checks.Tags.security, deploy=True)
def webhooks_leave_the_machine(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    if settings.WEBHOOK_RECEIVER:
        return [
            checks.Error(
                "WEBHOOK_RECEIVER is set: tenants could send requests to this machine itself.",
                hint="Unset it. It is for the development receiver only.",
                id="pooldesk.E012",
            )
        ]
    return []
