from django.urls import path

from tickets.ready_answers import views

desk_pages = [
    path("", views.list_answers, name="answers"),
    path("new/", views.new_answer, name="answer_new"),
    path("options/", views.answer_options, name="answer_options"),
    path("<str:answer>/", views.edit_answer, name="answer"),
    path("<str:answer>/delete/", views.delete_answer, name="answer_delete"),
]
