"""All routes. The tenant is in none of them: it is pinned to the session."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from portal.web.access import public

urlpatterns = [
    path("", public(RedirectView.as_view(pattern_name="tickets:queue")), name="home"),
    path("", include("tenants.urls")),
    path("tickets/", include("tickets.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "portal.web.error_pages.bad_request"
handler403 = "portal.web.error_pages.forbidden"
handler404 = "portal.web.error_pages.not_found"
handler500 = "portal.web.error_pages.server_error"
