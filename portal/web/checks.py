"""System checks: what must hold before Pooldesk serves anyone, and what `check --deploy` refuses in production.

What lets a stranger in, or one tenant reach another, is an error here even where Django only warns: a deployment
that runs `check --deploy` stops at errors and goes on at warnings.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from django.core import checks
from django.core.checks.security import base as django_security
from django.core.exceptions import ImproperlyConfigured
from django.http.request import validate_host

from portal.dynamo import placement
from portal.isolation import policies
from portal.limits import rates

# The tag of what is refused before anything is made, without loading the pages that other checks look at.
SETTINGS: Final = "settings"

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
# The key that DEBUG=true falls back to stands in the source; anyone can sign with it.
_PUBLISHED_KEYS = (django_security.SECRET_KEY_INSECURE_PREFIX, "development-only-")


@checks.register(checks.Tags.security, deploy=True)
def engine_is_not_the_embedded_one(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    host = urlsplit(settings.DYNAMODB_ENDPOINT_URL).hostname
    if host in _LOOPBACK:
        return [
            checks.Error(
                "DYNAMODB_ENDPOINT_URL points at an engine on this machine.",
                hint="Unset it to use Amazon DynamoDB, or name the endpoint that production uses.",
                id="pooldesk.E001",
            )
        ]
    return []


@checks.register(checks.Tags.security, deploy=True)
def debug_is_off(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report Django's security.W018 as an error: DEBUG also brings the published key and cookies without TLS."""
    if settings.DEBUG:
        return [
            checks.Error(
                "DEBUG is on: error pages show settings and source to anyone.",
                hint="Unset DEBUG, or set DEBUG=false.",
                id="pooldesk.E002",
            )
        ]
    return []


@checks.register(checks.Tags.security, deploy=True)
def secret_key_is_secret(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report Django's security.W009 as an error, by the same measure. Old keys still verify signatures, so they count
    too."""
    try:
        keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    except ImproperlyConfigured:  # Django's answer to an empty key
        keys = [""]
    if any(_is_guessable(key) for key in keys):
        return [
            checks.Error(
                "SECRET_KEY is missing, short or published: whoever knows it can sign messages and password resets.",
                hint=f"Set it, and SECRET_KEY_FALLBACKS if used, to {django_security.SECRET_KEY_MIN_LENGTH} or more "
                "random characters that are kept with the other secrets.",
                id="pooldesk.E003",
            )
        ]
    return []


def _is_guessable(key: str) -> bool:
    return (
        len(key) < django_security.SECRET_KEY_MIN_LENGTH
        or len(set(key)) < django_security.SECRET_KEY_MIN_UNIQUE_CHARACTERS
        or key.startswith(_PUBLISHED_KEYS)
    )


@checks.register(checks.Tags.security, deploy=True)
def guard_is_on(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    if not settings.DYNAMODB_GUARD:
        return [
            checks.Error(
                "DYNAMODB_GUARD is off: requests are sent without being held against the tenant's policy.",
                hint="Unset it. It is there for measurements only.",
                id="pooldesk.E004",
            )
        ]
    return []


@checks.register(checks.Tags.security, deploy=True)
def iam_is_the_third_layer(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report an error on Amazon DynamoDB: without the tenant role the process must hold a role that reads every tenant.

    Elsewhere a warning: no other endpoint is known to evaluate session tags, so the keys and the guard are all
    there is, and whoever runs it should know.
    """
    if settings.TENANT_ROLE_ARN:
        return []
    host = urlsplit(settings.DYNAMODB_ENDPOINT_URL).hostname
    if host and not host.endswith(_AMAZON):
        return [
            checks.Warning(
                "TENANT_ROLE_ARN is empty: IAM is not the third layer between tenants, the keys and the guard are all.",
                hint="Silence this where the endpoint has no IAM, with SILENCED_SYSTEM_CHECKS.",
                id="pooldesk.W003",
            )
        ]
    return [
        checks.Error(
            "TENANT_ROLE_ARN is empty: one process role can reach the items of every tenant.",
            hint="Set it to TenantRoleArn, an output of the stack of infra/template.yaml.",
            id="pooldesk.E005",
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def hosts_are_named(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    if "*" in settings.ALLOWED_HOSTS:
        return [
            checks.Error(
                'ALLOWED_HOSTS has "*": the portal answers to any name that somebody points at it.',
                hint="Name the hosts that people use.",
                id="pooldesk.E006",
            )
        ]
    return []


@checks.register(checks.Tags.security, deploy=True)
def cookies_need_tls(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report Django's security.W012 and W016 as an error: a session cookie read on the way is the person's session."""
    insecure = [name for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE") if not getattr(settings, name)]
    if insecure:
        return [
            checks.Error(
                f"{' and '.join(insecure)} off: cookies travel without TLS.",
                hint="Both follow DEBUG; leave them to it.",
                id="pooldesk.E007",
            )
        ]
    return []


@checks.register(checks.Tags.security, deploy=True)
def mail_reaches_people(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    if not settings.MAIL_TRANSPORT.endswith((".smtp.EmailBackend", ".SesEmailBackend")):
        return [
            checks.Warning(
                "EMAIL_URL does not send mail: nobody can reset a password.",
                hint="Set EMAIL_URL=smtp+tls://user:password@host:587, or ses://<region>.",
                id="pooldesk.W001",
            )
        ]
    return []


@checks.register(SETTINGS)
def timeouts_fit_a_request(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    longest = (settings.DYNAMODB_CONNECT_TIMEOUT + settings.DYNAMODB_READ_TIMEOUT) * settings.DYNAMODB_MAX_ATTEMPTS
    if longest > 30:
        return [
            checks.Warning(
                f"One call to DynamoDB may take {longest:g} s: longer than people and proxies wait for a page.",
                hint="Lower DYNAMODB_READ_TIMEOUT or DYNAMODB_MAX_ATTEMPTS.",
                id="pooldesk.W002",
            )
        ]
    return []


@checks.register(checks.Tags.security, deploy=True)
def mails_lead_here(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report a missing address for links in mails: a Host header comes from whoever sends the request."""
    try:
        address = urlsplit(settings.PORTAL_BASE_URL)
        is_site = address.scheme == "https" and not (address.path or address.query or address.fragment)
        host = address.hostname or ""
    except ValueError:
        is_site, host = False, ""
    if is_site and validate_host(host, settings.ALLOWED_HOSTS):
        return []
    return [
        checks.Error(
            "PORTAL_BASE_URL is not the https address of a host in ALLOWED_HOSTS: links in mails would lead nowhere.",
            hint="Set PORTAL_BASE_URL=https://desk.example.com, without a path.",
            id="pooldesk.E008",
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def clients_are_told_apart(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    if settings.BEHIND_TLS_PROXY and settings.TRUSTED_PROXIES < 1:
        return [
            checks.Error(
                "BEHIND_TLS_PROXY is on and TRUSTED_PROXIES is 0: all clients share the proxy's address, so wrong "
                "passwords from anybody keep everybody out.",
                hint="Set TRUSTED_PROXIES to the number of proxies that add to X-Forwarded-For.",
                id="pooldesk.E009",
            )
        ]
    if settings.SECURE_SSL_REDIRECT and not settings.BEHIND_TLS_PROXY:
        return [
            checks.Warning(
                "BEHIND_TLS_PROXY is off: gunicorn serves plain HTTP here, so each request is sent to HTTPS again.",
                hint="Set BEHIND_TLS_PROXY=true behind a proxy that sets X-Forwarded-Proto.",
                id="pooldesk.W004",
            )
        ]
    return []


@checks.register(checks.Tags.staticfiles, deploy=True)
def static_files_are_collected(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report a manifest that is missing: without it no page can name its stylesheet, and error pages fail too."""
    storage: Any = staticfiles_storage
    has_manifest = isinstance(storage, ManifestFilesMixin)
    if has_manifest and not storage.manifest_storage.exists(storage.manifest_name):
        return [
            checks.Error(
                f"There is no {storage.manifest_name} in {settings.STATIC_ROOT}: every page would fail.",
                hint="Run: python manage.py collectstatic --noinput",
                id="pooldesk.E010",
            )
        ]
    return []


@checks.register(SETTINGS)
def names_fit(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a prefix that makes the name of a table or queue longer than AWS takes, before something is made."""
    length, longest = len(settings.DYNAMODB_TABLE_PREFIX), policies.longest_prefix()
    if length <= longest:
        return []
    return [
        checks.Error(
            f"DYNAMODB_TABLE_PREFIX has {length} characters; at most {longest} leave room for the names of tables and "
            "queues.",
            hint="Shorten it: each name begins with it.",
            id="pooldesk.E011",
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def webhooks_leave_the_machine(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a production installation that sends webhooks elsewhere than to the public internet."""
    if settings.WEBHOOK_RECEIVER:
        return [
            checks.Error(
                "WEBHOOK_RECEIVER is set: tenants could send requests to this machine itself.",
                hint="Unset it. It is for the development receiver only.",
                id="pooldesk.E012",
            )
        ]
    return []


@checks.register(SETTINGS)
def rates_can_be_read(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse what would fail at each request."""
    try:
        rates.by_plan()
    except ImproperlyConfigured as error:
        hint = 'Name plans with their units a second, such as "standard=50 large=250", or "off" for no limits.'
        return [checks.Error(str(error), hint=hint, id="pooldesk.E013")]
    return []


@checks.register(SETTINGS)
def sites_can_be_reached(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a site or a plan's placement that fails only when a tenant is to be placed there."""
    hint = 'As JSON: {"frankfurt": {"region": "eu-central-1", "prefix": "Pooldesk"}}; plans: "large=silo/frankfurt".'
    return [checks.Error(fault, hint=hint, id="pooldesk.E020") for fault in placement.faults_of_settings()]
