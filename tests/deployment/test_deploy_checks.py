"""`manage.py check --deploy`: what it finds in an environment, and as a deployment runs it, a process of its own.

That a safe production has no issue, `test_production_chapter.py` holds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO

import pytest
from django.conf import settings
from django.core.checks import CheckMessage
from django.core.checks.registry import registry
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.http import HttpResponse
from django.middleware.security import SecurityMiddleware
from django.test import RequestFactory, override_settings

from portal.isolation import policies
from portal.settings import _DEVELOPMENT_KEY
from portal.web import checks
from tests.support.production import PRODUCTION, settings_of


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


NO_BASE = "PORTAL_BASE_URL is not the https address of a host in ALLOWED_HOSTS: links in mails would lead nowhere."
SECRET = "SECRET_KEY is missing, short or published: whoever knows it can sign messages and password resets."
NO_TABLE_ROLE = "TENANT_ROLE_ARN is empty: one process role can reach the items of every tenant."
UNSAFE = [
    ("DEBUG", "true", "E002", "DEBUG is on: error pages show settings and source to anyone."),
    ("SECRET_KEY", "short", "E003", SECRET),
    ("SECRET_KEY", _DEVELOPMENT_KEY, "E003", SECRET),
    ("SECRET_KEY", "", "E003", SECRET),
    ("SECRET_KEY_FALLBACKS", "old", "E003", SECRET),
    ("DYNAMODB_ENDPOINT_URL", "http://127.0.0.1:4566", "E001", "DYNAMODB_ENDPOINT_URL points at an engine on this "),
    ("DYNAMODB_ENDPOINT_URL", "http://[::1]:4566", "E001", "DYNAMODB_ENDPOINT_URL points at an engine on this machine"),
    ("DYNAMODB_GUARD", "false", "E004", "DYNAMODB_GUARD is off: requests are sent without being held against the "),
    ("TENANT_ROLE_ARN", "", "E005", NO_TABLE_ROLE),
    ("ALLOWED_HOSTS", "desk.example.com,*", "E006", 'ALLOWED_HOSTS has "*": the portal answers to any name that '),
    ("WEBHOOK_RECEIVER", "http://127.0.0.1:8410", "E012", "WEBHOOK_RECEIVER is set: tenants could send requests to "),
    ("PORTAL_BASE_URL", "", "E008", NO_BASE),
    ("PORTAL_BASE_URL", "http://desk.example.com", "E008", NO_BASE),
    ("PORTAL_BASE_URL", "https://elsewhere.example.com", "E008", NO_BASE),
    ("PORTAL_BASE_URL", "https://desk.example.com/path", "E008", NO_BASE),
    ("PORTAL_BASE_URL", "https://[bad", "E008", NO_BASE),
    ("TRUSTED_PROXIES", "0", "E009", "BEHIND_TLS_PROXY is on and TRUSTED_PROXIES is 0: all clients share the proxy's "),
    ("STATIC_ROOT", "/nonexistent", "E010", "There is no staticfiles.json in /nonexistent: every page would fail."),
    ("DYNAMODB_TABLE_PREFIX", "P" * 250, "E011", "DYNAMODB_TABLE_PREFIX has 250 characters; at most "),
    ("TENANT_RATES", "standard", "E013", "TENANT_RATES has 'standard', which is no plan with its rate"),
]


def found(**changes: str) -> list[CheckMessage]:
    """What our checks and Django's of security find in a production environment with these changes."""
    ours = ("portal.", "delivery.", "django.core.checks.security")
    with override_settings(**settings_of(**PRODUCTION | changes)):
        every = [one for one in registry.get_checks(include_deployment_checks=True) if one.__module__.startswith(ours)]
        return [message for check in every for message in check(None) if not message.is_silenced()]


def errors_of(**changes: str) -> list[str]:
    return [f"({message.id}) {message.msg}" for message in found(**changes) if message.is_serious()]


def warnings_of(**changes: str) -> list[str]:
    return [f"({message.id}) {message.msg}" for message in found(**changes) if not message.is_serious()]


@pytest.mark.parametrize(("name", "value", "issue", "sentence"), UNSAFE, ids=lambda part: str(part)[:30])
def test_an_unsafe_setting_is_an_error(name: str, value: str, issue: str, sentence: str) -> None:
    assert errors_of() == []
    assert [error for error in errors_of(**{name: value}) if error.startswith(f"(pooldesk.{issue}) {sentence}")]


def test_unsafe_settings_stop_the_deployment_each_with_its_error() -> None:
    # DEBUG and TENANT_ROLE_ARN would change how others are judged, and so would a second value of the same. The last
    # key of the table is empty: Django itself would end in a traceback wherever one is looked for.
    unsafe = {one[0]: one for one in UNSAFE if one[0] not in ("DEBUG", "TENANT_ROLE_ARN")}
    answer = deploy_check(**{name: value for name, value, *_ in unsafe.values()})
    assert answer.returncode == 1
    errors, _, _warnings = answer.stderr.partition("WARNINGS:")
    for _, _, issue, sentence in unsafe.values():
        assert f"(pooldesk.{issue}) {sentence}" in errors


def test_what_django_warns_of_is_said() -> None:
    said = " ".join(warnings_of(SECURE_SSL_REDIRECT="false", ALLOWED_HOSTS="", SECURE_HSTS_SECONDS="0"))
    assert "(security.W008)" in said
    assert "(security.W020)" in said
    assert "(security.W004)" in said  # browsers that are not bound to TLS


# No variable of the environment does this alone; a settings module of one's own can.
@pytest.mark.parametrize(
    "cookies", [["SESSION_COOKIE_SECURE"], ["CSRF_COOKIE_SECURE"], ["SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"]]
)
def test_cookies_that_travel_without_tls_are_an_error(cookies: list[str]) -> None:
    secure = {"SESSION_COOKIE_SECURE": True, "CSRF_COOKIE_SECURE": True}
    with override_settings(**secure | dict.fromkeys(cookies, False)):
        (error,) = checks.cookies_need_tls()
    assert (error.id, error.msg) == ("pooldesk.E007", f"{' and '.join(cookies)} off: cookies travel without TLS.")
    assert error.is_serious()


UNWISE = {
    "DYNAMODB_ENDPOINT_URL": "https://dynamodb.example.com",
    "TENANT_ROLE_ARN": "",
    "EMAIL_URL": "consolemail://",
    "BEHIND_TLS_PROXY": "false",
    "DYNAMODB_READ_TIMEOUT": "20",
    "SECURE_HSTS_SECONDS": "0",
}


def test_a_warning_stops_no_deployment() -> None:
    said = StringIO()
    with override_settings(**settings_of(**PRODUCTION | UNWISE)):
        call_command("check", "--deploy", stdout=said, stderr=said)
    assert "ERRORS:" not in said.getvalue()
    for message in (
        "(pooldesk.W001) EMAIL_URL does not send mail",
        "(pooldesk.W002) One call to DynamoDB may take",
        "(pooldesk.W003) TENANT_ROLE_ARN is empty",
        "(pooldesk.W004) BEHIND_TLS_PROXY is off",
        "(security.W004)",
    ):
        assert message in said.getvalue()


def test_only_where_there_is_no_iam_the_tenant_role_is_a_warning() -> None:
    with override_settings(DYNAMODB_ENDPOINT_URL="https://dynamodb.eu-central-1.amazonaws.com", TENANT_ROLE_ARN=""):
        (error,) = checks.iam_is_the_third_layer()
    assert (error.id, error.is_serious()) == ("pooldesk.E005", True)


def test_a_prefix_that_makes_a_name_too_long_is_refused_at_every_start() -> None:
    longest = policies.longest_prefix()
    assert errors_of(DYNAMODB_TABLE_PREFIX="P" * longest) == []
    says = f"has 250 characters; at most {longest} leave room for the names of tables and queues"
    # `create_tables` stands for whatever looks at the checks before it does anything.
    with override_settings(DYNAMODB_TABLE_PREFIX="P" * 250), pytest.raises(SystemCheckError, match=says) as refused:
        call_command("create_tables", skip_checks=False)
    assert "pooldesk.E011" in str(refused.value)


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
    request = RequestFactory().get("/", headers={"X-Forwarded-Proto": "https"})
    with override_settings(**settings_of(**PRODUCTION | changes)):
        answer = SecurityMiddleware(lambda request: HttpResponse())(request)
        assert answer["Strict-Transport-Security"] == header
