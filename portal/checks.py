"""System checks: what must hold before Pooldesk serves anyone, and what `check --deploy` refuses in production."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


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
def mail_reaches_people(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    if not settings.EMAIL_BACKEND.endswith(".smtp.EmailBackend"):
        return [
            checks.Warning(
                "EMAIL_URL does not send mail: nobody can reset a password.",
                hint="Set EMAIL_URL=smtp+tls://user:password@host:587.",
                id="pooldesk.W001",
            )
        ]
    return []


@checks.register
def timeouts_fit_a_request(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    longest = (settings.DYNAMODB_CONNECT_TIMEOUT + settings.DYNAMODB_READ_TIMEOUT) * settings.DYNAMODB_MAX_ATTEMPTS
    if longest > 30:
        return [
            checks.Warning(
                f"One call to DynamoDB may take {longest:g} s; gunicorn ends a request after 30 s.",
                hint="Lower DYNAMODB_READ_TIMEOUT or DYNAMODB_MAX_ATTEMPTS.",
                id="pooldesk.W002",
            )
        ]
    return []
