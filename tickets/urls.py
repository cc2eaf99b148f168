from django.urls import include, path, register_converter
from django.urls.converters import IntConverter

from portal.web.desk_prefix import desk_pages
from tickets.dashboards import views as verify_views
from tickets.desk import handover_views, views


class TicketNumber(IntConverter):
    """From 1 to 15 digits without leading zeros: what keys.py takes and a bookmark holds."""

    regex = "[1-9][0-9]{0,14}"


register_converter(TicketNumber, "ticket_number")

app_name = "tickets"

_ticket_pages = [
    path("", views.queue, name="queue"),
    path("new/", views.new, name="new"),
    path("bulk/", views.bulk_change, name="bulk"),
    path("dashboard/verify/", verify_views.verify, name="verify"),
    path("dashboard/verified/", verify_views.verified, name="verified"),
    path("people/", views.people, name="people"),
    path("handover/", handover_views.handovers, name="handovers"),
    path("handover/<str:user>/", handover_views.hand_on, name="handover"),
    path("dashboard/", views.dashboard_page, name="dashboard"),
    path("<ticket_number:number>/", views.ticket, name="ticket"),
    path("<ticket_number:number>/edit/", views.edit, name="edit"),
    path("<ticket_number:number>/comment/", views.comment, name="comment"),
    path("<ticket_number:number>/change/", views.change, name="change"),
    path("<ticket_number:number>/assign/", views.assign, name="assign"),
]

urlpatterns = [desk_pages(path("tickets/", include(_ticket_pages)))]
