"""Point the AWS SDK at a local engine, and see whether it answers. Django is not imported here."""

from __future__ import annotations

import http.client
from collections.abc import MutableMapping

from portal.engines.ports import LOOPBACK

# Always the same one: ministack keeps the regions apart, so in another the saved data would seem gone.
REGION = "eu-central-1"
ACCESS_KEY = "pooldesk"  # DynamoDB Local takes letters and digits only


def point_at(endpoint_url: str, environ: MutableMapping[str, str]) -> None:
    """Point the AWS SDK of ``environ`` at a local engine, with credentials that open nothing elsewhere."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        environ.pop(name, None)
    environ.update(
        DYNAMODB_ENDPOINT_URL=endpoint_url,
        AWS_ACCESS_KEY_ID=ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY=ACCESS_KEY,
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
    )


def answers(port: int) -> bool:
    """Tell whether ListTables succeeds; the signature is not checked, but both engines want its shape."""
    return _succeeds(port, "dynamodb", "DynamoDB_20120810.ListTables")


def has_queues(port: int) -> bool:
    """Tell whether ListQueues succeeds."""
    return _succeeds(port, "sqs", "AmazonSQS.ListQueues")


def _succeeds(port: int, service: str, target: str) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    scope = f"{ACCESS_KEY}/20260101/{REGION}/{service}/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": target,
    }
    try:
        connection.request("POST", "/", body=b"{}", headers=headers)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
