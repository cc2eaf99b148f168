"""Rotate the keys that sign cookies, links and reply addresses: AWS Secrets Manager calls `handler`.

A rotation must not invalidate anything while old and new processes run side by side. So each rotation adds a new key
that processes only accept, and promotes the one that the previous rotation added: all processes have known that one
since they started. Former keys stay accepted, because letters that carry signed addresses are answered months later.

Source: AWS, "Lambda rotation functions" (its four steps).
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from typing import Any, Final

from portal import aws_session

log = logging.getLogger("pooldesk.rotation")

FORMER: Final = 12  # keys kept: with one rotation in 90 days, those of three years
_NEXT: Final = "NEXT_SECRET_KEY"
_CHARACTERS: Final = 48  # random bytes of a key, which has 64 characters


def rotated(members: dict[str, str]) -> dict[str, str]:
    """Return the secret's members after one rotation. The first rotation only adds the next key."""
    key, promoted = members["SECRET_KEY"], members.get(_NEXT, "")
    former = [one for one in members.get("SECRET_KEY_FALLBACKS", "").split(",") if one and one != promoted]
    if promoted:
        key, former = promoted, [key, *former]
    following = secrets.token_urlsafe(_CHARACTERS)
    fallbacks = [following, *former[:FORMER]]
    return {**members, "SECRET_KEY": key, "SECRET_KEY_FALLBACKS": ",".join(fallbacks), _NEXT: following}


def handler(event: dict[str, Any], context: object = None) -> None:
    """Carry out one step of a rotation. Each step can be repeated. Raises ValueError for a version that is not being
    rotated to, and for an unknown step."""
    region = os.environ["AWS_REGION"]
    client = aws_session.client("secretsmanager", region, os.environ.get("SECRETS_ENDPOINT_URL", ""))
    secret, version, step = event["SecretId"], event["ClientRequestToken"], event["Step"]
    stages: dict[str, list[str]] = client.describe_secret(SecretId=secret)["VersionIdsToStages"]
    if "AWSCURRENT" in stages.get(version, []):
        log.info("This version of the secret is in force already.")
        return
    match step:
        case "createSecret":
            if "AWSPENDING" in stages.get(version, []) and _has_value(client, secret, version):
                return
            current = json.loads(client.get_secret_value(SecretId=secret, VersionStage="AWSCURRENT")["SecretString"])
            client.put_secret_value(
                SecretId=secret,
                ClientRequestToken=version,
                SecretString=json.dumps(rotated(current)),
                VersionStages=["AWSPENDING"],
            )
        case "setSecret":
            pass  # nothing but the portal itself knows the keys
        case "testSecret":
            pending = json.loads(client.get_secret_value(SecretId=secret, VersionId=version)["SecretString"])
            if pending[_NEXT] not in pending["SECRET_KEY_FALLBACKS"].split(","):
                raise ValueError("The new version does not accept the next key.")
        case "finishSecret":
            in_force = next(name for name, of in stages.items() if "AWSCURRENT" in of)
            client.update_secret_version_stage(
                SecretId=secret, VersionStage="AWSCURRENT", MoveToVersionId=version, RemoveFromVersionId=in_force
            )
            _restart_web(region)
        case _:
            raise ValueError(f"There is no step {step} in a rotation.")


def _has_value(client: Any, secret: str, version: str) -> bool:
    try:
        client.get_secret_value(SecretId=secret, VersionId=version)
    except client.exceptions.ResourceNotFoundException:
        return False  # Secrets Manager has made the version and nothing in it
    return True


def _restart_web(region: str) -> None:
    """Replace the web tasks one after the other: a process reads the keys when it starts."""
    cluster, service = os.environ.get("WEB_CLUSTER"), os.environ.get("WEB_SERVICE")
    if cluster and service:
        ecs = aws_session.client("ecs", region, os.environ.get("ECS_ENDPOINT_URL", ""))
        ecs.update_service(cluster=cluster, service=service, forceNewDeployment=True)
