from django.urls import path

from tickets.articles import public_views, views

desk_pages = [
    path("", views.list_articles, name="articles"),
    path("new/", views.new_article, name="article_new"),
    path("options/", views.article_options, name="article_options"),
    path("sections/", views.edit_sections, name="article_sections"),
    path("sections/<str:section>/", views.edit_section, name="article_section"),
    path("sections/<str:section>/move/", views.move_section, name="article_section_move"),
    path("<int:number>/", views.article, name="article"),
    path("<int:number>/edit/", views.edit_article, name="article_edit"),
    path("<int:number>/publish/", views.publish_article, name="article_publish"),
    path("<int:number>/withdraw/", views.withdraw_article, name="article_withdraw"),
    path("<int:number>/delete/", views.delete_article, name="article_delete"),
    path("<int:number>/versions/", views.list_versions, name="article_versions"),
    path("<int:number>/versions/<int:version>/", views.show_version, name="article_version"),
    path(
        "<int:number>/versions/<int:version>/restore/",
        views.restore_version,
        name="article_restore",
    ),
]

guest_pages = [
    path("<slug:slug>/", public_views.help_home, name="help"),
    path("<slug:slug>/suggest/", public_views.help_suggest, name="help_suggest"),
    path("<slug:slug>/<int:number>/", public_views.help_article, name="help_article"),
    path("<slug:slug>/<int:number>-<slug:words>/", public_views.help_article, name="help_article_words"),
]
