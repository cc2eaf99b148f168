"""The one place from which AWS clients come: sessions, and the process's clients of SQS, STS, SES and their like.

Sessions share what botocore reads from its files: models of services, endpoints and their rules. Reading and parsing
those is most of what a client costs: the second one of a process takes 20 ms instead of 80. Clients of DynamoDB are
made by `portal/dynamo/client.py`, one for each role, from a session of their own.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import botocore.config
import botocore.session

_loader: Any = None
_clients: dict[tuple[Any, ...], Any] = {}
_lock = threading.Lock()


def new_session(endpoint_url: str) -> Any:
    """Return botocore's session for clients of this endpoint, "" for AWS itself.

    boto3's would do the same, and each process that starts would load its transfers of files, which nobody uses."""
    global _loader
    session = botocore.session.Session()
    if _loader is None:
        _loader = session.get_component("data_loader")
    session.register_component("data_loader", _loader)
    if endpoint_url and not os.environ.get("AWS_ACCESS_KEY_ID"):
        # A local engine asks for no real credentials, but botocore does not sign without some.
        session.set_credentials("local", "local")
    return session


def client(service: str, region: str, endpoint_url: str = "", **config: Any) -> Any:
    """Return the process's client of a service, with this botocore configuration; a forked child makes its own."""
    wanted = (service, region, endpoint_url, repr(sorted(config.items())))
    if wanted not in _clients:
        with _lock:
            if wanted not in _clients:
                _clients[wanted] = new_session(endpoint_url).create_client(
                    service, region, endpoint_url=endpoint_url or None, config=botocore.config.Config(**config)
                )
    return _clients[wanted]


def reset() -> None:
    """Forget all clients: in a forked child, and for changed credentials."""
    global _lock
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=reset)
