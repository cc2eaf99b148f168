from django.apps import AppConfig

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
