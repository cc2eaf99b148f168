"""The handler that AWS Lambda calls with what Amazon SES tells of letters, in the place of `run_delivery`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from delivery.queues import queue_readers
from tickets.letters.stored import LETTERS_QUEUE


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Hand on the letters of a batch of notifications. Returns the ids of those that stay in the queue."""
    return queue_readers.take_batch(LETTERS_QUEUE, event)
