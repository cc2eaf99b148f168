from django.urls import include, path

import tickets.urls  # noqa: F401  # declares how a ticket's number stands in an address
from api.documents import views
from api.v1.version import version_1

app_name = "api"

urlpatterns = [
    path("v1/openapi.json", views.schema, name="schema"),
    path("v1/docs/", views.reference, name="reference"),
    path("v1/", include((version_1.urls[0], "v1"), namespace="v1")),
]
