"""Give the kernel its settings where there is no Django project: `standalone.configure("Todo")`, before it is used.

The kernel reads its settings through `django.conf.settings` and needs no other part of Django. A project that has a
settings module writes the names of DEFAULTS there and does not call this.
"""

from __future__ import annotations

import os
from typing import Any, Final

from django.conf import settings

# Texts among them are taken from the environment where it has them.
DEFAULTS: Final[dict[str, Any]] = {
    "AWS_REGION": "eu-central-1",
    "AWS_ACCOUNT_ID": "000000000000",
    "DYNAMODB_ENDPOINT_URL": "",  # of a local engine; "" is Amazon DynamoDB
    "DYNAMODB_TABLE_PREFIX": "",  # the first part of the name of every table
    "DYNAMODB_GUARD": True,
    "DYNAMODB_CONNECT_TIMEOUT": 1.0,  # seconds
    "DYNAMODB_READ_TIMEOUT": 5.0,
    "DYNAMODB_MAX_ATTEMPTS": 3,
    "DYNAMODB_TABLE_QUOTA": 2_500,
    "TENANT_ROLE_ARN": "",  # the role that is assumed for each tenant; "" leaves the policy and the credentials off
    "STS_ENDPOINT_URL": "",
    "WEB_THREADS": 8,  # that share one client
    "MAIL_BUCKET": "",  # that each ObjectGrant is about
    "SILOS": {},
    "PLAN_PLACEMENTS": {},
}


def configure(prefix: str, **stated: Any) -> None:
    """Set what the kernel reads, unless a project has done so. `stated` replaces defaults and the environment."""
    if settings.configured or os.environ.get("DJANGO_SETTINGS_MODULE"):
        return
    found = {name: os.environ.get(name, text) for name, text in DEFAULTS.items() if isinstance(text, str)}
    found["DYNAMODB_TABLE_PREFIX"] = found["DYNAMODB_TABLE_PREFIX"] or prefix
    settings.configure(**{**DEFAULTS, **found, **stated})
