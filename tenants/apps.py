from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin import autodiscover, site
from django.contrib.admin.apps import AdminConfig
from django.contrib.admin.checks import check_admin_app
from django.core import checks

from portal.apps import RoomsConfig
from tenants.tenancy import placements


class TenantsConfig(RoomsConfig):
    name = "tenants"

    def ready(self) -> None:
        super().ready()
        from portal.streams import stream_source

        stream_source.declare_listing(placements.listed)


class OperatorAdminConfig(AdminConfig):
    """Django's admin with the operators' site.

    Its check of dependencies is left out: it wants Django's own session and authentication middlewares, for which
    `IdentityMiddleware` stands.
    """

    default = False
    default_site = "tenants.operators.operator_site.OperatorSite"

    def ready(self) -> None:
        """Leave the operators' pages to `portal/urls.py`: workers and commands serve none, and start without them."""
        checks.register(check_operators_pages, checks.Tags.admin)


def check_operators_pages(app_configs: Sequence[AppConfig] | None, **how: Any) -> list[checks.CheckMessage]:
    """Check the pages, and the models that only they have: those may not have been there when models were checked."""
    autodiscover()
    models = (model for model in site._registry if app_configs is None or model._meta.app_config in app_configs)
    return check_admin_app(app_configs, **how) + [error for model in models for error in model.check(**how)]
