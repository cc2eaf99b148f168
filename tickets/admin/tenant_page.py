"""Answer an operators' page that is about one tenant, `?tenant=<slug>`, and otherwise about all.

It has a form to order something for that tenant, and tables of what was ordered before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from portal.errors import Conflict, Invalid, NotFound
from tenants.operators.operator_site import OperatorSite
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem

KEPT_WHERE: Final = "in the audit trail, which the desk's admins read as well."
UNEXPLAINED: Final = "No reason was given."
_HEADINGS: Final = {"By": "Asked for by", "Begun": "Begun, UTC", "Waited": "Writes waited"}
LOOK_AGAIN_SECONDS: Final = 3  # while something is carried out for the tenant


@dataclass(frozen=True)
class TenantPage:
    """Hold what the pages differ in: `name` is that of the address, the template's too, and `form` what is ordered by.

    `field` is what only the form sends. `of_tenant` and `of_all` return what the template shows: of a tenant, and
    without one. `order` does what the form says and returns a sentence. So does each of `buttons`, by the name that it
    sends. Their errors (Conflict, Invalid, NotFound) are shown at the field, or above the page.
    """

    name: str
    form: type[Form]
    field: str
    of_tenant: Callable[[TenantItem], dict[str, Any]]
    of_all: Callable[[], dict[str, Any]]
    order: Callable[[HttpRequest, TenantItem, dict[str, Any]], str]
    buttons: dict[str, Callable[[HttpRequest, TenantItem], str]]

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Show it, or do what was sent and lead back to the tenant's page."""
        slug = request.GET.get("tenant", "").strip().lower()
        tenant = tenant_directory.with_slug(slug)
        form = self.form(request.POST if tenant and self.field in request.POST else None)
        if request.method == "POST" and tenant and self._acted(request, tenant, form):
            return redirect(f"{reverse(f'admin:{self.name}')}?{urlencode({'tenant': tenant.slug})}")
        context = {
            **OperatorSite.context_of(request),
            "title": self.name.capitalize(),
            "slug": slug,
            "unknown": slug and tenant is None,
            "form": form,
            **({"tenant": tenant, **self.of_tenant(tenant)} if tenant else self.of_all()),
        }
        template = f"tickets/admin/{self.name}.html"
        response = TemplateResponse(request, template, context, status=422 if form.is_bound else 200)
        if request.method == "GET" and context.get("now", {}).get("runs"):
            response["Refresh"] = str(LOOK_AGAIN_SECONDS)
        return response

    def _acted(self, request: HttpRequest, tenant: TenantItem, form: Form) -> bool:
        """Do what the button says; False, with the reason at its field, where what was typed has to stay."""
        pressed = next((act for name, act in self.buttons.items() if name in request.POST), None)
        if pressed is None and not form.is_valid():
            return False
        try:
            said = pressed(request, tenant) if pressed else self.order(request, tenant, form.cleaned_data)
        except (Conflict, Invalid, NotFound) as error:
            if pressed is None:
                named = getattr(error, "field", None)
                form.add_error(named if named in form.fields else self.field, error.message)
                return False
            messages.error(request, error.message)
        else:
            messages.success(request, said)
        return True


def cells(**said: object) -> list[tuple[str, str, object]]:
    """Return the cells of a row: each with the heading of its column, a short one for narrow screens, and what it says.

    Moments are in UTC.
    """
    return [
        (_HEADINGS.get(name, name), name, f"{value:%-d %b %Y, %H:%M:%S}" if isinstance(value, datetime) else value)
        for name, value in said.items()
    ]
