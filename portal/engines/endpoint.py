"""Find ports of loopback, point the AWS SDK at a local engine, and see whether it answers.

Django is not imported here: the test suite starts its engine before ``django.setup()``.
"""

from __future__ import annotations

import http.client
import secrets
import socket
from collections.abc import MutableMapping

LOOPBACK = "127.0.0.1"
_OWN_PORTS = range(20_000, 32_000)


def port_obstacle(port: int) -> str | None:
    """Return why nothing can listen on this port of loopback ("8000 is taken"), or None if something can."""
    with socket.socket() as probe:
        # Without it, the closing connections of a server that just ended would count as an obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except PermissionError:
            return f"{port} is reserved for root"
        except OverflowError:
            return f"{port} does not exist"
        except OSError:
            return f"{port} is taken"
    return None


def free_port() -> int:
    """Return a port of loopback that nobody listens at.

    One below those that the kernel gives to connections (32768 on Linux, 49152 elsewhere): until a server has
    started and listens, somebody's connection would otherwise have taken it.
    """
    while port_obstacle(port := secrets.choice(_OWN_PORTS)):
        pass
    return port


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
