"""The environment of a proper production, as `check --deploy` wants it; tests change one thing in it."""

from __future__ import annotations

import atexit
import json
import os
import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

_static = Path(tempfile.mkdtemp(prefix="pooldesk-static-"))
atexit.register(shutil.rmtree, _static, ignore_errors=True)
(_static / "staticfiles.json").write_text(json.dumps({"paths": {}, "version": "1.1", "hash": ""}))

PRODUCTION = {
    "DEBUG": "false",
    "SECRET_KEY": "q7Vt2-Lx9Kd4_Rw8Zb3Nf6Hs1Jm5Pc0Gy-TuEiAoSvXqBnMlWkDz",
    "SECRET_KEY_FALLBACKS": "",
    "ALLOWED_HOSTS": "desk.example.com",
    "PORTAL_BASE_URL": "https://desk.example.com",
    "TRUSTED_PROXIES": "1",
    "BEHIND_TLS_PROXY": "true",
    "STATIC_ROOT": str(_static),
    "EMAIL_URL": "smtp+tls://desk:secret@mail.example.com:587",
    "AWS_REGION": "eu-central-1",
    "DYNAMODB_ENDPOINT_URL": "",
    "DYNAMODB_GUARD": "true",
    "TENANT_ROLE_ARN": "arn:aws:iam::123456789012:role/pooldesk-prod-TenantRole",
    "SECURE_SSL_REDIRECT": "true",
    "SECURE_HSTS_SECONDS": "31536000",
}

# What cannot change while Django runs.
_FIXED = {"DATABASES", "INSTALLED_APPS", "LOGGING"}


def settings_of(**environ: str) -> dict[str, Any]:
    """What `portal/settings.py` makes of an environment, for `override_settings`."""
    with mock.patch.dict(os.environ, environ, clear=True):
        made = runpy.run_path(str(Path(__file__).parents[2] / "portal" / "settings.py"))
    return {name: value for name, value in made.items() if name.isupper() and name not in _FIXED}
