"""Form the keys of endpoints and their deliveries. The partition of endpoints and secrets is the tenant's id."""

from __future__ import annotations

import re
from typing import Final

from portal.schema import keys

ENDPOINT: Final = "ep_"  # what the id of every endpoint begins with
_ENDPOINT_ID: Final = re.compile(r"ep_[0-9a-f]{16}\Z")
_ID_BYTES: Final = 8


def endpoint_id(request_id: str) -> str:
    """Return the id of the endpoint that a form makes, the same however often the form is sent."""
    return ENDPOINT + keys.digest(request_id, size=_ID_BYTES)


def is_endpoint_id(text: str) -> bool:
    """Tell whether a text has the form of an endpoint's id."""
    return _ENDPOINT_ID.match(text) is not None


def deliveries(tenant_id: str, endpoint: str) -> str:
    """Return the partition key of the log of one endpoint. Raises ValueError for what is no id of one."""
    if not is_endpoint_id(endpoint):
        raise ValueError("this is no id of an endpoint")
    return keys.composite(tenant_id, endpoint)


def delivery(at: str, event_id: str) -> str:
    """Return the sort key of one event in the log of an endpoint: by when it happened."""
    return keys.joined(at, event_id)


def delivery_parts(sort: str) -> tuple[str, str]:
    """Return the time stamp and the event's id in what `delivery` formed. Raises ValueError for anything else."""
    at, event_id = keys.split(sort)
    return at, event_id
