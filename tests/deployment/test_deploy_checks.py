"""`manage.py check --deploy` as a deployment runs it: a process of its own, told everything by its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from portal.settings import _DEVELOPMENT_KEY

PRODUCTION = {
    "DEBUG": "false",
    "SECRET_KEY": "q7Vt2-Lx9Kd4_Rw8Zb3Nf6Hs1Jm5Pc0Gy-TuEiAoSvXqBnMlWkDz",
    "SECRET_KEY_FALLBACKS": "",
    "ALLOWED_HOSTS": "desk.example.com",
    "EMAIL_URL": "smtp+tls://desk:secret@mail.example.com:587",
    "AWS_REGION": "eu-central-1",
    "DYNAMODB_ENDPOINT_URL": "",
    "DYNAMODB_GUARD": "true",
    "TENANT_ROLE_ARN": "arn:aws:iam::123456789012:role/pooldesk-prod-TenantRole",
    "SECURE_SSL_REDIRECT": "true",
    "SECURE_HSTS_SECONDS": "31536000",
}


def deploy_check(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """What `check --deploy` answers in a production environment with these changes."""
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", *arguments],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], **PRODUCTION, **changes},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_safe_production_environment_has_no_issue() -> None:
    answer = deploy_check("--fail-level", "WARNING")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "no issues (0 silenced)" in answer.stdout


SECRET = "SECRET_KEY is missing, short or published: whoever knows it can sign messages and password resets."
UNSAFE = [
    ("DEBUG", "true", "E002", "DEBUG is on: error pages show settings and source to anyone."),
    ("SECRET_KEY", "short", "E003", SECRET),
    ("SECRET_KEY", _DEVELOPMENT_KEY, "E003", SECRET),
    ("SECRET_KEY_FALLBACKS", "old", "E003", SECRET),
    (
        "DYNAMODB_ENDPOINT_URL",
        "http://127.0.0.1:4566",
        "E001",
        "DYNAMODB_ENDPOINT_URL points at an engine on this machine.",
    ),
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
        'ALLOWED_HOSTS has "*": a forged Host header gets into the links of password mails.',
    ),
]


@pytest.mark.parametrize(
    ("name", "value", "issue", "sentence"), UNSAFE, ids=[f"{name}={value[:12]}" for name, value, *_ in UNSAFE]
)
def test_an_unsafe_setting_stops_the_deployment(name: str, value: str, issue: str, sentence: str) -> None:
    answer = deploy_check(**{name: value})
    assert answer.returncode == 1
    errors, _, _warnings = answer.stderr.partition("WARNINGS:")
    assert f"(pooldesk.{issue}) {sentence}" in errors


def test_a_missing_secret_key_stops_the_deployment() -> None:
    # Alone with the security checks: the modules behind the URLs sign things, and do not load without a key.
    answer = deploy_check("--tag", "security", SECRET_KEY="")
    assert answer.returncode == 1
    assert "(pooldesk.E003) SECRET_KEY is missing" in answer.stderr
    assert deploy_check(SECRET_KEY="").returncode == 1


@pytest.mark.parametrize("cookie", ["SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"])
def test_a_cookie_that_travels_without_tls_stops_the_deployment(cookie: str, tmp_path: Path) -> None:
    # No variable of the environment does this alone; a settings module of one's own can.
    (tmp_path / "own_settings.py").write_text(f"from portal.settings import *\n{cookie} = False\n")
    answer = deploy_check(DJANGO_SETTINGS_MODULE="own_settings", PYTHONPATH=str(tmp_path))
    assert answer.returncode == 1
    assert f"(pooldesk.E007) {cookie} off: cookies travel without TLS." in answer.stderr


@pytest.mark.parametrize(
    ("endpoint", "issue", "exit_status"),
    [
        ("https://dynamodb.example.com", "pooldesk.W003", 0),
        ("https://dynamodb.eu-central-1.amazonaws.com", "pooldesk.E005", 1),
    ],
)
def test_only_where_there_is_no_iam_the_tenant_role_is_a_warning(endpoint: str, issue: str, exit_status: int) -> None:
    answer = deploy_check(DYNAMODB_ENDPOINT_URL=endpoint, TENANT_ROLE_ARN="")
    assert f"({issue}) TENANT_ROLE_ARN is empty" in answer.stderr
    assert answer.returncode == exit_status


def test_mail_that_goes_nowhere_is_a_warning() -> None:
    answer = deploy_check(EMAIL_URL="consolemail://")
    assert "(pooldesk.W001) EMAIL_URL does not send mail" in answer.stderr
    assert answer.returncode == 0
