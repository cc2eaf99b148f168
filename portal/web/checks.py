"""System checks: what must hold before Pooldesk serves anyone, and what `check --deploy` refuses in production.

Settings that let a stranger in, or one tenant reach another, are errors here even where Django only warns: a deployment
that runs `check --deploy` stops at errors and continues at warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.storage import ManifestFilesMixin, staticfiles_storage
from django.core import checks
from django.core.checks.security import base as django_security
from django.core.exceptions import ImproperlyConfigured
from django.http.request import validate_host
from django.urls import URLPattern, URLResolver, get_resolver

from portal.dynamo import placement
from portal.isolation import policies
from portal.load import tenant_limiter
from portal.schema.access_patterns import Cost
from portal.web import access
from portal.web.access import Access

# The tag of checks that run before anything is made, without loading the pages that other checks look at.
SETTINGS: Final = "settings"

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
# The key that DEBUG=true falls back to stands in the source; anyone can sign with it.
_PUBLISHED_KEYS = (django_security.SECRET_KEY_INSECURE_PREFIX, "development-only-")

Messages = Iterator[checks.CheckMessage]


def _check(tag: str, **how: bool) -> Callable[[Callable[[], Messages]], Any]:
    """Register a function that yields messages as a system check."""

    def register(find: Callable[[], Messages]) -> Any:
        def check(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
            return list(find())

        update_wrapper(check, find)
        del check.__wrapped__  # type: ignore[attr-defined]  # Django looks at its parameters
        return checks.register(tag, **how)(check)

    return register


_in_production = partial(_check, deploy=True)


def _error(number: int, text: str, hint: str) -> checks.Error:
    return checks.Error(text, hint=hint, id=f"pooldesk.E{number:03}")


def _warning(number: int, text: str, hint: str) -> checks.Warning:
    return checks.Warning(text, hint=hint, id=f"pooldesk.W{number:03}")


@_in_production(checks.Tags.security)
def settings_are_for_production() -> Messages:
    if urlsplit(settings.DYNAMODB_ENDPOINT_URL).hostname in _LOOPBACK:
        hint = "Unset it to use Amazon DynamoDB, or name the endpoint that production uses."
        yield _error(1, "DYNAMODB_ENDPOINT_URL points at an engine on this machine.", hint)
    if settings.DEBUG:  # an error, unlike Django's security.W018: it also brings the published key, cookies without TLS
        hint = "Unset DEBUG, or set DEBUG=false."
        yield _error(2, "DEBUG is on: error pages show settings and source to anyone.", hint)
    if not settings.DYNAMODB_GUARD:
        text = "DYNAMODB_GUARD is off: requests are sent without being held against the tenant's policy."
        yield _error(4, text, "Unset it. It is there for measurements only.")
    if "*" in settings.ALLOWED_HOSTS:
        text = 'ALLOWED_HOSTS has "*": the portal answers to any name that somebody points at it.'
        yield _error(6, text, "Name the hosts that people use.")
    if not settings.MAIL_TRANSPORT.endswith((".smtp.EmailBackend", ".SesEmailBackend")):
        hint = "Set EMAIL_URL=smtp+tls://user:password@host:587, or ses://<region>."
        yield _warning(1, "EMAIL_URL does not send mail: nobody can reset a password.", hint)
    if settings.WEBHOOK_RECEIVER:
        text = "WEBHOOK_RECEIVER is set: tenants could send requests to this machine itself."
        yield _error(12, text, "Unset it. It is for the development receiver only.")


@_in_production(checks.Tags.security)
def secret_key_is_secret() -> Messages:
    """Report Django's security.W009 as an error, by the same measure. Old keys still verify signatures, so they count
    too."""
    try:
        keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    except ImproperlyConfigured:  # Django's answer to an empty key
        keys = [""]
    if any(_is_guessable(key) for key in keys):
        yield _error(
            3,
            "SECRET_KEY is missing, short or published: whoever knows it can sign messages and password resets.",
            f"Set it, and SECRET_KEY_FALLBACKS if used, to {django_security.SECRET_KEY_MIN_LENGTH} or more "
            "random characters that are kept with the other secrets.",
        )


def _is_guessable(key: str) -> bool:
    return (
        len(key) < django_security.SECRET_KEY_MIN_LENGTH
        or len(set(key)) < django_security.SECRET_KEY_MIN_UNIQUE_CHARACTERS
        or key.startswith(_PUBLISHED_KEYS)
    )


@_in_production(checks.Tags.security)
def iam_is_the_third_layer() -> Messages:
    """Report an error on Amazon DynamoDB: without the tenant role the process must hold a role that reads every tenant.

    Elsewhere a warning: no other endpoint is known to evaluate session tags, so the keys and the guard are all
    there is, and the operator of the installation should know.
    """
    if settings.TENANT_ROLE_ARN:
        return
    host = urlsplit(settings.DYNAMODB_ENDPOINT_URL).hostname
    if host and not host.endswith(_AMAZON):
        text = "TENANT_ROLE_ARN is empty: IAM is not the third layer between tenants, the keys and the guard are all."
        yield _warning(3, text, "Silence this where the endpoint has no IAM, with SILENCED_SYSTEM_CHECKS.")
    else:
        text = "TENANT_ROLE_ARN is empty: one process role can reach the items of every tenant."
        yield _error(5, text, "Set it to TenantRoleArn, an output of the stack of infra/template.yaml.")


@_in_production(checks.Tags.security)
def cookies_need_tls() -> Messages:
    """Report Django's security.W012 and W016 as an error: a session cookie read on the way is the person's session."""
    insecure = [name for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE") if not getattr(settings, name)]
    if insecure:
        text = f"{' and '.join(insecure)} off: cookies travel without TLS."
        yield _error(7, text, "Both follow DEBUG; leave them to it.")


@_in_production(checks.Tags.security)
def mails_lead_here() -> Messages:
    """Report a missing address for links in mails: a Host header comes from the sender of the request."""
    try:
        address = urlsplit(settings.PORTAL_BASE_URL)
        is_site = address.scheme == "https" and not (address.path or address.query or address.fragment)
        host = address.hostname or ""
    except ValueError:
        is_site, host = False, ""
    if not (is_site and validate_host(host, settings.ALLOWED_HOSTS)):
        text = "PORTAL_BASE_URL is not the https address of a host in ALLOWED_HOSTS: links in mails would lead nowhere."
        yield _error(8, text, "Set PORTAL_BASE_URL=https://desk.example.com, without a path.")


@_in_production(checks.Tags.security)
def clients_are_told_apart() -> Messages:
    if settings.BEHIND_TLS_PROXY and settings.TRUSTED_PROXIES < 1:
        yield _error(
            9,
            "BEHIND_TLS_PROXY is on and TRUSTED_PROXIES is 0: all clients share the proxy's address, so wrong "
            "passwords from anybody keep everybody out.",
            "Set TRUSTED_PROXIES to the number of proxies that add to X-Forwarded-For.",
        )
    elif settings.SECURE_SSL_REDIRECT and not settings.BEHIND_TLS_PROXY:
        text = "BEHIND_TLS_PROXY is off: gunicorn serves plain HTTP here, so each request is sent to HTTPS again."
        yield _warning(4, text, "Set BEHIND_TLS_PROXY=true behind a proxy that sets X-Forwarded-Proto.")


@_in_production(checks.Tags.staticfiles)
def static_files_are_collected() -> Messages:
    """Report a manifest that is missing: without it no page can name its stylesheet, and error pages fail too."""
    storage: Any = staticfiles_storage
    has_manifest = isinstance(storage, ManifestFilesMixin)
    if has_manifest and not storage.manifest_storage.exists(storage.manifest_name):
        text = f"There is no {storage.manifest_name} in {settings.STATIC_ROOT}: every page would fail."
        yield _error(10, text, "Run: python manage.py collectstatic --noinput")


@_check(SETTINGS)
def settings_can_be_used() -> Messages:
    """Report settings that would fail later: at each request, at a long table name, or when a tenant is placed."""
    longest = (settings.DYNAMODB_CONNECT_TIMEOUT + settings.DYNAMODB_READ_TIMEOUT) * settings.DYNAMODB_MAX_ATTEMPTS
    if longest > 30:
        text = f"One call to DynamoDB may take {longest:g} s: longer than people and proxies wait for a page."
        yield _warning(2, text, "Lower DYNAMODB_READ_TIMEOUT or DYNAMODB_MAX_ATTEMPTS.")
    length, most = len(settings.DYNAMODB_TABLE_PREFIX), policies.longest_prefix()
    if length > most:
        limit = f"at most {most} leave room for the names of tables and queues."
        text = f"DYNAMODB_TABLE_PREFIX has {length} characters; {limit}"
        yield _error(11, text, "Shorten it: each name begins with it.")
    try:
        tenant_limiter.by_plan()
    except ImproperlyConfigured as error:
        hint = 'Name plans with their units a second, such as "standard=50 large=250", or "off" for no limits.'
        yield _error(13, str(error), hint)
    hint = 'As JSON: {"frankfurt": {"region": "eu-central-1", "prefix": "Pooldesk"}}; plans: "large=silo/frankfurt".'
    for fault in placement.faults_of_settings():
        yield _error(20, fault, hint)


# --- what routes cost ---


@dataclass(frozen=True)
class DeclaredRoute:
    """A route of the portal as a declaration sees it. `method` is "" for any, `name` is that of `reverse`, and `path`
    is the address with its parameters."""

    method: str
    path: str
    name: str
    view: Callable[..., Any]
    cost: Cost  # beside that of its level

    @property
    def title(self) -> str:
        return f"{self.method} {self.path}".strip()

    @property
    def level(self) -> str:
        access: Access = self.view.access  # type: ignore[attr-defined]  # each route has one: see access.py
        return access.level

    @property
    def total(self) -> Cost:
        return self.cost + access.cost_of_level(self.view)

    @property
    def file(self) -> str:
        module: str = self.view.costs_in[self.method]  # type: ignore[attr-defined]  # of portal/web/access.py
        return f"{module.replace('.', '/')}.py"


def routes() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield each route of the portal as an address with its parameters, its name and its view."""
    return _routes(get_resolver().url_patterns, "/", "")


def _routes(patterns: list[Any], prefix: str, space: str) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(
                pattern.url_patterns, path, f"{space}{pattern.namespace}:" if pattern.namespace else space
            )
        elif isinstance(pattern, URLPattern):
            yield path, f"{space}{pattern.name}" if pattern.name else "", pattern.callback


def declared_routes() -> list[DeclaredRoute]:
    return [
        DeclaredRoute(method, path, name, view, what)
        for path, name, view in routes()
        for method, what in sorted(getattr(view, "costs", {}).items())
    ]


def declarations() -> list[list[DeclaredRoute]]:
    """Return the routes by declaration, in the order of their addresses: pages of a model in the admin have one."""
    found: dict[tuple[int, str], list[DeclaredRoute]] = {}
    for one in sorted(declared_routes(), key=lambda one: (one.path, one.method)):
        found.setdefault((id(one.cost), one.level), []).append(one)
    return [*found.values()]


def methods_of(view: Callable[..., Any]) -> set[str]:
    """Return the methods that a view answers, "" for any."""
    scopes: Mapping[str, str] = getattr(getattr(view, "access", None), "scopes", {})
    return {*(scopes or getattr(view, "methods", [access.ANY]))}


@_check(checks.Tags.urls)
def routes_declare_their_costs() -> Messages:
    """Report a method of a route without a declared cost, one that the route refuses, and what is wrong in one."""
    for path, _, view in routes():
        declared: dict[str, Cost] = getattr(view, "costs", {})
        takes = methods_of(view) - {"HEAD", "OPTIONS"}
        wanted = {"GET", "POST"} if takes == {access.ANY} else takes
        missing = sorted(wanted - {*declared}) if access.ANY not in declared else []
        if not declared:
            hint = "Put @on_get(...) or @on_post(...) of portal/web/access.py on its view."
            yield _error(21, f"The route {path} does not declare what it costs.", hint)
        elif missing:
            hint = "Declare that method, too: see portal/web/access.py."
            yield _error(21, f"The route {path} does not declare what {', '.join(missing)} costs.", hint)
        for method, what in declared.items():
            faults = what.faults()
            if method and method not in takes and takes != {access.ANY}:
                faults.append(f"it declares what {method} costs, and refuses it")
            if not method and len(declared) > 1:
                faults.append("it declares what any method costs beside what some cost")
            if what.patterns and not (what.trips or (what.each and what.each[0])):
                faults.append("it names keys, and no round trips")
            for fault in faults:
                hint = "docs/access-patterns.md says how a route declares its cost."
                yield _error(22, f"The route {path}: {fault}.", hint)


def refuse_undeclared() -> None:
    """Raise ImproperlyConfigured where a route does not declare what it costs: the portal serves none of them then."""
    found = [str(message.msg) for message in routes_declare_their_costs()]
    if found:
        raise ImproperlyConfigured(" ".join(found))
