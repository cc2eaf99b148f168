"""Show the audit trail, read only; and open the content of a desk for a while, for a reason."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from portal.errors import NotFound
from portal.nosql.admin import DynamoAdmin
from portal.nosql.admin.options import ReasonField
from portal.schema import keys
from portal.schema.access_patterns import cost
from portal.web.access import on_get, on_post
from tenants.admin.admin_lists import ActionInput, ActorInput, NamedColumns, TrailInput, with_id
from tenants.operators import content_access
from tenants.operators.facades import AuditRow
from tenants.operators.operator_site import OperatorSite, actor
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem


@admin.register(AuditRow)
class AuditRowAdmin(NamedColumns, DynamoAdmin):
    get_costs = cost(
        get="address, audit row, slug",
        query="audit row, audit rows by actor, audit rows by object, membership, tenant by name",
        trips=4,
        reads=20,
    )
    post_costs = cost(get="audit row", trips=1, reads=10)
    list_display = ("at", "actor", "done", "what", "changes")
    list_filter = (TrailInput, ActorInput, ActionInput)
    fields = ("at", "actor", "done", "entity_type", "entity_id", "entity_name", "before", "after", "tenant")

    @admin.display(description="action")
    def done(self, obj: Any) -> str:
        return with_id(obj.words, obj.action)

    @admin.display(description="object")
    def what(self, obj: Any) -> str:
        """Lead to all rows about the same object."""
        about = {"tenant_id": obj.tenant_id, "entity_type": obj.entity_type, "entity_id": obj.entity_id}
        url = f"{reverse('admin:tenants_auditrow_changelist')}?{urlencode(about)}"
        return format_html('<a href="{}">{} {}</a>', url, obj.entity_type, obj.entity_name or obj.entity_id)

    @admin.display(description="before → after")
    def changes(self, obj: Any) -> str:
        return f"{obj.before} → {obj.after}" if obj.before and obj.after else str(obj.before or obj.after)


class ContentAccessForm(forms.Form):
    tenant = forms.CharField(label="Desk", max_length=80, help_text="Its slug or id.")
    reason = ReasonField(
        widget=forms.Textarea(attrs={"rows": 3}), help_text="The owners of the desk can read it, with your name."
    )

    def clean_tenant(self) -> TenantItem:
        typed: str = self.cleaned_data["tenant"].strip()
        try:
            return tenant_directory.get(typed) if keys.TENANT_ID.match(typed) else tenant_directory.find(typed.lower())
        except NotFound as error:
            raise forms.ValidationError("There is no desk with this slug or id.") from error


@OperatorSite.page("content-access/", name="content_access", title="Access to content")
@on_get()
@on_post(get="slug", write="audit row", trips=6, reads=2, writes=10)
def content_access_page(request: HttpRequest) -> HttpResponse:
    """Begin access to the content of a desk, or end it, and lead back to where it was asked for."""
    back = _back(request)
    if request.method == "POST" and "end" in request.POST:
        content_access.end(request)
        messages.success(request, "The desk's content is hidden again.")
        return HttpResponseRedirect(back)
    form = ContentAccessForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        tenant: TenantItem = form.cleaned_data["tenant"]
        access = content_access.begin(request, tenant, reason=form.cleaned_data["reason"], by=actor(request))
        messages.success(request, f"You see the content of {access.name} until {access.ends_at:%H:%M} UTC.")
        return HttpResponseRedirect(back)
    context: dict[str, Any] = {
        **OperatorSite.context_of(request),
        "title": "Access to content",
        "form": form,
        "back": back,
        "minutes": content_access.SECONDS // 60,
    }
    return TemplateResponse(request, "tenants/admin/content_access.html", context, status=422 if form.errors else 200)


def _back(request: HttpRequest) -> str:
    """Return the page of this site from which somebody came, as the form says."""
    asked = request.POST.get("next", "")
    is_ours = asked.startswith(reverse("admin:index")) and url_has_allowed_host_and_scheme(asked, allowed_hosts=None)
    return asked if is_ours else reverse("admin:content_access")
