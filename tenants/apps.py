from django.contrib.admin import autodiscover
from django.contrib.admin.apps import AdminConfig
from django.contrib.admin.checks import check_admin_app
from django.core import checks

from portal.apps import RoomsConfig


class TenantsConfig(RoomsConfig):
    name = "tenants"

    def ready(self) -> None:
        super().ready()
        from portal.streams import stream_source
        from tenants.tenancy import placements

        stream_source.declare_listing(placements.sources)


class OperatorAdminConfig(AdminConfig):
    """Django's admin with the operators' site.

    Its check of dependencies is left out: it wants Django's own session and authentication middlewares, for which
    `IdentityMiddleware` stands.
    """

    default = False
    default_site = "tenants.operators.operator_site.OperatorSite"

    def ready(self) -> None:
        checks.register(check_admin_app, checks.Tags.admin)
        autodiscover()
