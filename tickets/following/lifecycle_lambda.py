"""The handler that AWS Lambda calls each minute as the lifecycle role, the other host beside `manage.py run_lifecycle`.

The next call continues unfinished work. Calls overlap: each job is carried out by the one that has its lease.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any, Final

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from portal.errors import Unavailable
from tickets.following import lifecycle_work  # needs the settings

SECONDS: Final = 840  # of the fifteen minutes that a call may take, so that a step fits in that cannot be broken off

log = logging.getLogger("pooldesk.stream")

_followers = lifecycle_work.followers()


def schedule_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Carry out what operators have ordered, until it has ended or time is up. Return how many jobs have ended."""
    until = time.monotonic() + SECONDS
    ended = 0
    for follower in _followers:
        try:
            ended += follower.turn(lambda: time.monotonic() < until)
        except Unavailable as error:  # the next minute brings the next call
            log.warning("What was ordered for whole tenants cannot be looked up now: %s", error.message)
    return {"ended": ended}
