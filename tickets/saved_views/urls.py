"""The pages of saved views, below the queue."""

from __future__ import annotations

from django.urls import path

from tickets.saved_views import views

desk_pages = [
    path("", views.list_views, name="views"),
    path("new/", views.new_view, name="view_new"),
    path("counts/", views.counts, name="view_counts"),
    path("<str:view>/", views.edit_view, name="view"),
    path("<str:view>/move/", views.move_view, name="view_move"),
    path("<str:view>/star/", views.star_view, name="view_star"),
    path("<str:view>/delete/", views.delete_view, name="view_delete"),
]
