"""Read settings from AWS Secrets Manager when a process starts, so that no task or function has them written down."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping

from portal import aws_session

NAMES = "AWS_SECRETS"


def load(environ: MutableMapping[str, str] = os.environ) -> None:
    """Add the members of each secret that AWS_SECRETS names, a JSON object of texts, to the environment.

    Variables that are set already stay as they are. Raises botocore's ClientError for a secret that cannot be read.
    """
    names = [name for name in environ.get(NAMES, "").split(",") if name]
    if not names:
        return
    region = environ.get("AWS_REGION", "eu-central-1")
    client = aws_session.client("secretsmanager", region, environ.get("SECRETS_ENDPOINT_URL", ""))
    for name in names:
        members = json.loads(client.get_secret_value(SecretId=name)["SecretString"])
        for variable, value in members.items():
            environ.setdefault(variable, value)
