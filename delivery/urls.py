from django.urls import include, path

from delivery.webhooks import views
from portal.web.desk_prefix import desk_pages

app_name = "delivery"

_webhook_pages = [
    path("", views.webhooks, name="webhooks"),
    path("new/", views.new, name="webhook_new"),
    path("events/", views.event_types, name="webhook_events"),
    path("<str:endpoint>/", views.webhook, name="webhook"),
    path("<str:endpoint>/edit/", views.edit, name="webhook_edit"),
    path("<str:endpoint>/rotate/", views.rotate, name="webhook_rotate"),
    path("<str:endpoint>/pause/", views.pause, name="webhook_pause"),
    path("<str:endpoint>/resume/", views.resume, name="webhook_resume"),
    path("<str:endpoint>/remove/", views.remove, name="webhook_remove"),
    path("<str:endpoint>/test/", views.test, name="webhook_test"),
    path("<str:endpoint>/redeliver/", views.redeliver_since, name="webhook_redeliver_since"),
    path("<str:endpoint>/deliveries/<str:delivery>/", views.delivery, name="webhook_delivery"),
    path("<str:endpoint>/deliveries/<str:delivery>/redeliver/", views.redeliver, name="webhook_redeliver"),
]

urlpatterns = [desk_pages(path("desk/settings/webhooks/", include(_webhook_pages)))]
