"""`manage.py check --deploy` as a deployment runs it: a process of its own, told everything by its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from portal.isolation import policies
from portal.settings import _DEVELOPMENT_KEY
from portal.web import checks
from tests.support.production import PRODUCTION


def deploy_check(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """What `check --deploy` answers in a production environment with these changes."""
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", *arguments],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], **PRODUCTION, **changes},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_safe_production_environment_has_no_issue() -> None:
    answer = deploy_check("--fail-level", "WARNING")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "no issues (2 silenced)" in answer.stdout


NO_BASE = "PORTAL_BASE_URL is not the https address of a host in ALLOWED_HOSTS: links in mails would lead nowhere."
SECRET = "SECRET_KEY is missing, short or published: whoever knows it can sign messages and password resets."
LOCAL_ENGINE = "DYNAMODB_ENDPOINT_URL points at an engine on this machine."
UNSAFE = [
    ("DEBUG", "true", "E002", "DEBUG is on: error pages show settings and source to anyone."),
    ("SECRET_KEY", "short", "E003", SECRET),
    ("SECRET_KEY", _DEVELOPMENT_KEY, "E003", SECRET),
    ("SECRET_KEY_FALLBACKS", "old", "E003", SECRET),
    ("DYNAMODB_ENDPOINT_URL", "http://127.0.0.1:4566", "E001", LOCAL_ENGINE),
    (
        "DYNAMODB_GUARD",
        "false",
        "E004",
        "DYNAMODB_GUARD is off: requests are sent without being held against the tenant's policy.",
    ),
    (
        "TENANT_ROLE_ARN",
        "",
        "E005",
        "TENANT_ROLE_ARN is empty: one process role can reach the items of every tenant.",
    ),
    (
        "ALLOWED_HOSTS",
        "desk.example.com,*",
        "E006",
        'ALLOWED_HOSTS has "*": the portal answers to any name that somebody points at it.',
    ),
    (
        "WEBHOOK_RECEIVER",
        "http://127.0.0.1:8410",
        "E012",
        "WEBHOOK_RECEIVER is set: tenants could send requests to this machine itself.",
    ),
    ("PORTAL_BASE_URL", "http://desk.example.com", "E008", NO_BASE),
    (
        "TRUSTED_PROXIES",
        "0",
        "E009",
        "BEHIND_TLS_PROXY is on and TRUSTED_PROXIES is 0: all clients share the proxy's address",
    ),
    ("STATIC_ROOT", "/nonexistent", "E010", "There is no staticfiles.json in /nonexistent: every page would fail."),
    ("DYNAMODB_TABLE_PREFIX", "P" * 250, "E011", "DYNAMODB_TABLE_PREFIX has 250 characters; at most "),
    ("TENANT_RATES", "standard", "E013", "TENANT_RATES has 'standard', which is no plan with its rate"),
    (
        "DYNAMODB_ENDPOINT_URL",
        "http://[::1]:4566",
        "E001",
        "DYNAMODB_ENDPOINT_URL points at an engine on this machine.",
    ),
]


# What changes how others are judged is tried alone.
ALONE = {"DEBUG", "TENANT_ROLE_ARN"}


def rounds() -> list[dict[str, tuple[str, str, str]]]:
    """The unsafe settings in as few environments as they fit into, each with one value of a variable at most."""
    alone = [{name: (value, issue, sentence)} for name, value, issue, sentence in UNSAFE if name in ALONE]
    together: list[dict[str, tuple[str, str, str]]] = []
    for name, value, issue, sentence in UNSAFE:
        if name not in ALONE:
            free = next((some for some in together if name not in some), None)
            if free is None:
                together.append(free := {})
            free[name] = value, issue, sentence
    return alone + together


@pytest.mark.parametrize("unsafe", rounds(), ids=lambda unsafe: "+".join(unsafe))
def test_unsafe_settings_stop_the_deployment_each_with_its_error(unsafe: dict[str, tuple[str, str, str]]) -> None:
    answer = deploy_check(**{name: value for name, (value, *_) in unsafe.items()})
    assert answer.returncode == 1
    errors, _, _warnings = answer.stderr.partition("WARNINGS:")
    for _, issue, sentence in unsafe.values():
        assert f"(pooldesk.{issue}) {sentence}" in errors


@pytest.mark.parametrize(
    "address",
    ["", "http://desk.example.com", "https://elsewhere.example.com", "https://desk.example.com/path", "https://[bad"],
)
def test_what_is_no_address_of_the_portal_is_an_error(address: str) -> None:
    with override_settings(PORTAL_BASE_URL=address, ALLOWED_HOSTS=["desk.example.com"]):
        (error,) = checks.mails_lead_here(None)
    assert (error.id, error.msg, error.is_serious()) == ("pooldesk.E008", NO_BASE, True)


def test_a_missing_secret_key_stops_the_deployment() -> None:
    # Alone with the security checks: the modules behind the URLs sign things, and do not load without a key.
    answer = deploy_check("--tag", "security", SECRET_KEY="")
    assert answer.returncode == 1
    assert "(pooldesk.E003) SECRET_KEY is missing" in answer.stderr
    assert deploy_check(SECRET_KEY="").returncode == 1


def test_cookies_without_tls_stop_the_deployment_and_what_django_warns_of_is_said(tmp_path: Path) -> None:
    # No variable of the environment does this alone; a settings module of one's own can.
    (tmp_path / "own_settings.py").write_text(
        "from portal.settings import *\nSESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False\n"
    )
    own = {"DJANGO_SETTINGS_MODULE": "own_settings", "PYTHONPATH": str(tmp_path)}
    answer = deploy_check(SECURE_SSL_REDIRECT="false", ALLOWED_HOSTS="", **own)
    assert answer.returncode == 1
    errors, _, warnings = answer.stderr.partition("WARNINGS:")
    both = "SESSION_COOKIE_SECURE and CSRF_COOKIE_SECURE"
    assert f"(pooldesk.E007) {both} off: cookies travel without TLS." in errors
    assert "(security.W008)" in warnings
    assert "(security.W020)" in warnings


@pytest.mark.parametrize("cookie", ["SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"])
def test_one_cookie_that_travels_without_tls_is_an_error(cookie: str) -> None:
    secure = {"SESSION_COOKIE_SECURE": True, "CSRF_COOKIE_SECURE": True}
    with override_settings(**secure | {cookie: False}):
        (error,) = checks.cookies_need_tls(None)
    assert (error.id, error.msg) == ("pooldesk.E007", f"{cookie} off: cookies travel without TLS.")


@pytest.fixture(scope="module")
def warned() -> subprocess.CompletedProcess[str]:
    """The answer to all that is unwise and lets the portal work."""
    return deploy_check(
        DYNAMODB_ENDPOINT_URL="https://dynamodb.example.com",
        TENANT_ROLE_ARN="",
        EMAIL_URL="consolemail://",
        BEHIND_TLS_PROXY="false",
        DYNAMODB_TABLE_PREFIX="P" * policies.longest_prefix(),
        DYNAMODB_READ_TIMEOUT="20",
        SECURE_HSTS_SECONDS="0",
    )


def test_a_warning_stops_no_deployment(warned: subprocess.CompletedProcess[str]) -> None:
    assert "ERRORS:" not in warned.stderr
    assert warned.returncode == 0


def test_only_where_there_is_no_iam_the_tenant_role_is_a_warning(warned: subprocess.CompletedProcess[str]) -> None:
    assert "(pooldesk.W003) TENANT_ROLE_ARN is empty" in warned.stderr
    with override_settings(DYNAMODB_ENDPOINT_URL="https://dynamodb.eu-central-1.amazonaws.com", TENANT_ROLE_ARN=""):
        (error,) = checks.iam_is_the_third_layer(None)
    assert (error.id, error.is_serious()) == ("pooldesk.E005", True)


def test_mail_that_goes_nowhere_is_a_warning(warned: subprocess.CompletedProcess[str]) -> None:
    assert "(pooldesk.W001) EMAIL_URL does not send mail" in warned.stderr


def test_a_request_that_may_take_too_long_is_a_warning(warned: subprocess.CompletedProcess[str]) -> None:
    assert "(pooldesk.W002) One call to DynamoDB may take" in warned.stderr


def test_browsers_that_are_not_bound_to_tls_are_a_warning(warned: subprocess.CompletedProcess[str]) -> None:
    assert "(security.W004)" in warned.stderr


def test_the_longest_prefix_is_no_issue(warned: subprocess.CompletedProcess[str]) -> None:
    assert "pooldesk.E011" not in warned.stderr


def test_a_prefix_that_makes_a_name_too_long_is_refused_at_every_start() -> None:
    longest = policies.longest_prefix()
    done = subprocess.run(
        [sys.executable, "manage.py", "create_tables"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DYNAMODB_TABLE_PREFIX": "P" * 250},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    assert "pooldesk.E011" in done.stderr
    assert f"has 250 characters; at most {longest} leave room for the names of tables and queues." in done.stderr


def test_a_redirect_that_never_ends_is_a_warning(warned: subprocess.CompletedProcess[str]) -> None:
    assert "(pooldesk.W004) BEHIND_TLS_PROXY is off" in warned.stderr


@pytest.mark.parametrize(
    ("changes", "header"),
    [
        ({}, "max-age=31536000"),
        (
            {"SECURE_HSTS_INCLUDE_SUBDOMAINS": "true", "SECURE_HSTS_PRELOAD": "true"},
            "max-age=31536000; includeSubDomains; preload",
        ),
    ],
    ids=["by default", "when asked for"],
)
def test_other_names_of_the_domain_are_bound_to_tls_only_when_asked_for(changes: dict[str, str], header: str) -> None:
    code = (
        "from django.http import HttpRequest, HttpResponse; request = HttpRequest(); "
        "from django.middleware.security import SecurityMiddleware; "
        "request.META['HTTP_X_FORWARDED_PROTO'] = 'https'; "
        "print(SecurityMiddleware(lambda request: HttpResponse())(request)['Strict-Transport-Security'])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "portal.settings", **PRODUCTION, **changes},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert answer.stdout.strip() == header, answer.stderr
