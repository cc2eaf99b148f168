"""The handler that AWS Lambda calls with what Amazon SES tells of bounces, the other host beside `note_bounces`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from delivery.mail import bounce_queue


def queue_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Note a batch of notifications. Returns the ids of those that stay in the queue."""
    return bounce_queue.note_batch(event)
