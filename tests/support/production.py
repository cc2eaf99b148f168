"""The environment of a proper production, as `check --deploy` wants it; tests change one thing in it."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from pathlib import Path

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
