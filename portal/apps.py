from django.apps import AppConfig
from django.core.cache import close_caches
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, reset_queries

from portal.schema import registry


class RoomsConfig(AppConfig):
    """An app made of packages: their tables, rights and parts of the template are known once it has started."""

    def ready(self) -> None:
        registry.discover(self.name)


class PortalConfig(RoomsConfig):
    name = "portal"

    def ready(self) -> None:
        super().ready()
        from portal.web import checks  # noqa: F401  # registers the system checks

        # There is no relational database whose connections each request would have to look at.
        request_started.disconnect(reset_queries)
        request_started.disconnect(close_old_connections)
        request_finished.disconnect(close_old_connections)
        request_finished.disconnect(close_caches)  # the cache is one of the process
