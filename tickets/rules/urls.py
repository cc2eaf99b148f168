from django.urls import path

from tickets.rules import views

desk_pages = [
    path("", views.list_rules, name="rules"),
    path("new/", views.new_rule, name="rule_new"),
    path("<str:rule>/", views.rule_page, name="rule"),
    path("<str:rule>/edit/", views.edit_rule, name="rule_edit"),
    path("<str:rule>/switch/", views.switch, name="rule_switch"),
    path("<str:rule>/delete/", views.delete, name="rule_delete"),
    path("<str:rule>/runs/", views.list_runs, name="rule_runs"),
    path("<str:rule>/runs/<str:run>/", views.run_page, name="rule_run"),
    path("<str:rule>/rehearsal/", views.rehearsal_page, name="rule_rehearsal"),
    path("<str:rule>/rehearsal/cancel/", views.cancel_rehearsal, name="rule_rehearsal_cancel"),
]
