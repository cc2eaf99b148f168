from django.urls import include, path

from portal.web.desk_prefix import desk_pages
from tenants.api_keys import views as api_key_views
from tenants.audit_trail import views as audit_views
from tenants.auditing import views as auditing_views
from tenants.impersonation import views as impersonation_views
from tenants.lifecycle import views as closing_views
from tenants.lifecycle import views as desk_views
from tenants.lifecycle import views as sign_in_views
from tenants.lifecycle import views as usage_views
from tenants.membership import invitation_views, member_views, profile_views
from tenants.sign_in import entering_views, views
from tenants.sign_in import views as session_views
from tenants.sign_in.security_views import (
    authenticator_add,
    authenticator_remove,
    codes_renew,
    confirm,
    passkey_add,
    passkey_options,
    passkey_remove,
    security,
)

app_name = "tenants"

_api_key_pages = [
    path("", api_key_views.api_keys, name="api_keys"),
    path("new/", api_key_views.new, name="api_key_new"),
    path("<str:api_key>/", api_key_views.api_key, name="api_key"),
    path("<str:api_key>/edit/", api_key_views.edit, name="api_key_edit"),
    path("<str:api_key>/roll/", api_key_views.roll, name="api_key_roll"),
    path("<str:api_key>/revoke/", api_key_views.revoke, name="api_key_revoke"),
]

_security_pages = [
    path("", security, name="security"),
    path("confirm/", confirm, name="security_confirm"),
    path("authenticator/", authenticator_add, name="authenticator_add"),
    path("authenticator/remove/", authenticator_remove, name="authenticator_remove"),
    path("passkeys/", passkey_add, name="passkey_add"),
    path("passkeys/options/", passkey_options, name="passkey_options"),
    path("passkeys/<str:passkey>/remove/", passkey_remove, name="passkey_remove"),
    path("codes/", codes_renew, name="recovery_codes"),
]

urlpatterns = [
    path(".well-known/pooldesk-keys.json", auditing_views.public_keys, name="public_keys"),
    path(".well-known/verify_audit_export.py", auditing_views.script, name="verify_script"),
    path("login/", views.login, name="login"),
    path("login/second-step/", entering_views.second_step, name="second_step"),
    path("login/passkey/", entering_views.passkey_sign_in, name="passkey_sign_in"),
    path("login/passkey/challenge/", entering_views.passkey_challenge, name="passkey_challenge"),
    path("logout/", views.logout, name="logout"),
    path("logout/everywhere/", views.logout_everywhere, name="logout_everywhere"),
    path("account/", views.account, name="account"),
    path("account/profile/", profile_views.profile, name="profile"),
    path("account/profile/zone/", profile_views.found_zone, name="found_zone"),
    path("account/password/", views.password_change, name="password_change"),
    path("account/sessions/", session_views.sessions_page, name="sessions"),
    path("account/sessions/<str:session>/end/", session_views.session_end, name="session_end"),
    path("account/security/", include(_security_pages)),
    path("password/reset/", views.password_reset, name="password_reset"),
    path("password/reset/sent/", views.password_reset_sent, name="password_reset_sent"),
    path("password/reset/<str:uid>/<str:token>/", views.password_reset_confirm, name="password_reset_confirm"),
    path("impersonation/stop/", impersonation_views.stop, name="impersonation_stop"),
    path("tenants/", views.pick, name="pick"),
    path("tenants/switch/", views.switch, name="switch"),
    path("tenants/accept/", invitation_views.accept_waiting, name="accept_waiting"),
    path("invitation/<str:token>/", invitation_views.follow_link, name="invitation"),
    desk_pages(
        path("desk/leave/", member_views.leave, name="leave"),
        path("desk/mail/", member_views.mail_choices_page, name="mail_choices"),
        path("desk/signature/", profile_views.signature, name="signature"),
        path("desk/members/", member_views.members_page, name="members"),
        path("desk/members/past/", member_views.past_members, name="past_members"),
        path("desk/members/past/restore/", member_views.restore, name="past_members_restore"),
        path("desk/members/<str:user>/role/", member_views.change_role, name="member_role"),
        path("desk/members/<str:user>/remove/", member_views.remove, name="member_remove"),
        path("desk/invitations/", invitation_views.invite_people, name="invitations"),
        path("desk/invitations/<str:invite>/resend/", invitation_views.resend, name="invitation_resend"),
        path("desk/invitations/<str:invite>/revoke/", invitation_views.revoke, name="invitation_revoke"),
        path("desk/evidence/", auditing_views.evidence, name="evidence"),
        path("desk/evidence/end/", auditing_views.end_own, name="evidence_end"),
        path("desk/evidence/verify/", auditing_views.verify, name="evidence_verify"),
        path("desk/evidence/download/", auditing_views.download, name="evidence_download"),
        path("desk/access-review/", auditing_views.review, name="access_review"),
        path("desk/auditors/", auditing_views.auditors_page, name="auditors"),
        path("desk/auditors/<str:user>/until/", auditing_views.extend, name="auditor_extend"),
        path("desk/auditors/<str:user>/end/", auditing_views.end, name="auditor_end"),
        path("desk/audit/", audit_views.audit_page, name="audit"),
        path("desk/audit/export/", audit_views.export, name="audit_export"),
        path("desk/settings/defaults/", desk_views.change_defaults, name="settings_defaults"),
        path("desk/settings/api-keys/", include(_api_key_pages)),
        path("desk/settings/access/", impersonation_views.platform_access, name="platform_access"),
        path("desk/settings/usage/", usage_views.usage_page, name="usage"),
        path("desk/settings/close/", closing_views.close, name="close"),
        path("desk/settings/close/undo/", closing_views.reopen, name="reopen"),
        path("desk/settings/sign-in/", sign_in_views.sign_in_page, name="settings_sign_in"),
        path("desk/settings/", desk_views.settings_page, name="settings"),
    ),
]
