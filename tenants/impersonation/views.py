"""Show the owners of a desk when operators acted as its members, and let an operator stop. Rules: impersonating.py."""

from __future__ import annotations

from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode

from portal.web.access import for_auditors, leads_out, member, on_get, on_post, public, unlimited
from tenants.impersonation import impersonating
from tenants.sign_in import impersonation_session
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest


@for_auditors
@member(Role.OWNER)
@on_get(query="audit rows by object", trips=1, reads=8)
def platform_access(request: TenantRequest) -> HttpResponse:
    """Show a page of visits. Costs one Query."""
    found = impersonating.visits_page(request.tenant, after=request.GET.get("after"))
    page = {"visits": found.visits, "next_url": f"?{urlencode({'after': found.next})}" if found.next else None}
    return render(request, "tenants/platform_access.html", page)


@leads_out
@unlimited
@public
@on_post()
def stop(request: HttpRequest) -> HttpResponse:
    """Go back to the admin: that the impersonation ends is seen to wherever a page leads out."""
    ids = impersonation_session.read_cookie(request.COOKIES.get(impersonation_session.COOKIE, ""))
    if ids is None:
        return redirect("admin:index")
    return redirect("admin:tenants_membership_change", quote(f"{ids.tenant_id}/{ids.member_id}"))
