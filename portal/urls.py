"""All routes. A desk's pages have its name in front, which the pinned tenant is compared with."""

from django.contrib import admin
from django.urls import include, path, register_converter
from django.urls.converters import StringConverter
from django.views.generic import RedirectView

from portal.web import views
from portal.web.access import costs, public
from portal.web.desk_prefix import desk_pages, namespace


class Anything(StringConverter):
    regex = ".*"


register_converter(Anything, "anything")
admin.autodiscover()

urlpatterns = [
    path("", public(costs()(RedirectView.as_view(pattern_name="tickets:queue"))), name="home"),
    path("admin/", admin.site.urls),
    path("tickets/<anything:rest>", views.without_desk, name="tickets_without_desk"),
    path("search/<anything:rest>", views.without_desk, name="search_without_desk"),
    path("requesters/<anything:rest>", views.without_desk, name="requesters_without_desk"),
    path("articles/<anything:rest>", views.without_desk, name="articles_without_desk"),
    path("letters/<anything:rest>", views.without_desk, name="letters_without_desk"),
    path("desk/<anything:rest>", views.without_desk, name="desk_without_desk"),
    namespace("tickets.urls"),  # tried before the others: its pages are asked for most
    namespace("tenants.urls"),
    namespace("delivery.urls"),
    path("api/", include("api.urls")),
    desk_pages(path("", views.desk_home, name="desk_home")),  # last: any word matches
]

handler400 = "portal.web.middleware.bad_request"
handler403 = "portal.web.middleware.forbidden"
handler404 = "portal.web.middleware.not_found"
handler500 = "portal.web.middleware.server_error"
