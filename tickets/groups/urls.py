"""The pages of groups and of availability."""

from __future__ import annotations

from django.urls import path

from tickets.groups import views

settings_pages = [
    path("", views.groups_page, name="groups"),
    path("new/", views.group, name="group_new"),
    path("people/<str:user_id>/", views.agent, name="group_agent"),
    path("<slug:group_id>/", views.group, name="group"),
    path("<slug:group_id>/delete/", views.delete, name="group_delete"),
]
