from django.urls import path

from tenants import views

app_name = "tenants"

urlpatterns = [
    path("login/", views.login, name="login"),
    path("logout/", views.logout, name="logout"),
    path("logout/everywhere/", views.logout_everywhere, name="logout_everywhere"),
    path("account/", views.account, name="account"),
    path("account/password/", views.password_change, name="password_change"),
    path("password/reset/", views.password_reset, name="password_reset"),
    path("password/reset/sent/", views.password_reset_sent, name="password_reset_sent"),
    path("password/reset/<str:uid>/<str:token>/", views.password_reset_confirm, name="password_reset_confirm"),
    path("tenants/", views.pick, name="pick"),
    path("tenants/switch/", views.switch, name="switch"),
]
