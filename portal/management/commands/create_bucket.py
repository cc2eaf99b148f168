"""Create the bucket of letters and files. Run again, it does nothing."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from portal.management.command import PortalCommand
from portal.objects import object_store
from portal.schema.access_patterns import cost


class Command(PortalCommand):
    costs = cost()
    help = "Create the bucket of letters and files, where there is none. On AWS the template creates it."

    def work(self, options: dict[str, Any]) -> None:
        is_new = object_store.create_bucket()
        self.stdout.write(f"The bucket {settings.MAIL_BUCKET} {'is created' if is_new else 'was there before'}.")
