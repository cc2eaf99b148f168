"""Declare what is stored of webhooks: endpoints, their secrets, and the log of deliveries.

Endpoints and secrets are changed by the platform role, because the tenant's own item, which has the subscriptions, is
changed in the same transaction. That role cannot read secrets: that is why they have a table of their own. A worker
pauses an endpoint that answers nothing by the same transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from django.utils.translation import gettext_noop
from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute

from delivery.webhooks.signatures import is_secret, new_secret
from portal import clock
from portal.dynamo.client import Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import (
    Holding,
    Raw,
    Reader,
    Stage,
    StoredItem,
    TenantArrival,
    declare_holding,
    declare_people,
    declare_texts,
    own_partition,
)
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.audit_trail.stored import AUDIT, CHAINS
from tenants.tenancy.stored import TENANTS

ENDPOINT: Final = "ep_"  # what the id of every endpoint begins with
_ENDPOINT_ID: Final = re.compile(r"ep_[0-9a-f]{16}\Z")
_ID_BYTES: Final = 8


def endpoint_id(request_id: str) -> str:
    """Return the id of the endpoint that a form makes, the same however often the form is sent."""
    return ENDPOINT + keys.digest(request_id, size=_ID_BYTES)


def is_endpoint_id(text: str) -> bool:
    return _ENDPOINT_ID.match(text) is not None


def log_partition(tenant_id: str, endpoint: str) -> str:
    """Return the partition key of the log of one endpoint. Raises ValueError for what is no id of one."""
    if not is_endpoint_id(endpoint):
        raise ValueError("this is no id of an endpoint")
    return keys.composite(tenant_id, endpoint)


def log_key(at: str, event_id: str) -> str:
    """Return the sort key of one event in the log of an endpoint: by when it happened."""
    return keys.joined(at, event_id)


def log_key_parts(sort: str) -> tuple[str, str]:
    """Return the time stamp and the event's id in what `log_key` formed. Raises ValueError for anything else."""
    at, event_id = keys.split(sort)
    return at, event_id


ENDPOINTS = Table("Events.Endpoints", "tenant", "tenant_id", "endpoint_id")
SECRETS = Table("Events.Secrets", "tenant", "tenant_id", "endpoint_id")
DELIVERIES = Table(
    "Events.Deliveries",
    "tenant",
    "tenant_endpoint",
    "timestamp_event_id",
    ttl="expires_at",
    leading_keys=keys.OWN_COMPOSITES,
)
declare(
    ENDPOINTS,
    SECRETS,
    DELIVERIES,
    grants=(
        # UpdateItem notes whether its deliveries fail.
        Grant("tenant", ENDPOINTS, ("GetItem", "Query", "UpdateItem")),
        Grant("tenant", SECRETS, ("GetItem",)),
        Grant("tenant", DELIVERIES, ("GetItem", "Query", "UpdateItem")),
        Grant("platform", ENDPOINTS, ("DeleteItem", "PutItem", "UpdateItem")),
        Grant("platform", SECRETS, ("DeleteItem", "PutItem")),
        Grant("delivery", ENDPOINTS, ("UpdateItem",), "PauseEndpoints"),
        Grant("delivery", TENANTS, ("BatchGetItem", "UpdateItem"), "EndSubscriptions"),
        Grant("delivery", AUDIT, ("PutItem",), "TellOfPauses"),
        Grant("delivery", CHAINS, ("BatchGetItem", "PutItem"), "MoveTheEndsOfChains"),
    ),
)


class EndpointItem(Item):
    """A tenant's address for webhooks.

    `state` is "active" or "paused", `paused_because` a sentence that says why, missing or "" where an admin did it.
    `failing_since` is when the first of its deliveries failed after the last one that was answered. `version` grows
    with each change.
    """

    table = ENDPOINTS

    tenant_id = UnicodeAttribute(hash_key=True)
    endpoint_id = UnicodeAttribute(range_key=True)
    url = UnicodeAttribute()
    description = UnicodeAttribute(default="")
    event_types: ListAttribute[Any] = ListAttribute(default=list)
    state = UnicodeAttribute(default="active")
    paused_because = UnicodeAttribute(null=True)
    failing_since = UnicodeAttribute(null=True)
    version = NumberAttribute(default=1)
    created_at = UnicodeAttribute()
    rotated_at = UnicodeAttribute()


class SecretItem(Item):
    """The signing secrets of an endpoint. `previous` signs beside it until `previous_until`.

    `earlier` has those before it that still sign, the latest first, each as `<until> <secret>`.
    """

    table = SECRETS

    tenant_id = UnicodeAttribute(hash_key=True)
    endpoint_id = UnicodeAttribute(range_key=True)
    current = UnicodeAttribute()
    previous = UnicodeAttribute(null=True)
    previous_until = UnicodeAttribute(null=True)
    earlier: ListAttribute[Any] = ListAttribute(default=list)


class DeliveryItem(Item):
    """One event and the result of sending it to one endpoint.

    `state` is "answered", "failed" (and is tried again at `next_at`), "dead" or "skipped" (the endpoint was paused).
    `attempts` holds, for each, `at`, `status` (0 without an answer), `ms` and `note`; `status`, `ms`, `note` and
    `excerpt`, the beginning of the answer, are those of the last. The request's body is in the outbox: in that of all,
    or in the tenant's own at the `placement`.
    """

    table = DELIVERIES

    tenant_endpoint = UnicodeAttribute(hash_key=True)
    timestamp_event_id = UnicodeAttribute(range_key=True)
    event_type = UnicodeAttribute()
    subject = UnicodeAttribute(default="")
    url = UnicodeAttribute()
    state = UnicodeAttribute()
    status = NumberAttribute(default=0)
    ms = NumberAttribute(default=0)
    note = UnicodeAttribute(default="")
    excerpt = UnicodeAttribute(default="")
    attempts: ListAttribute[Any] = ListAttribute(default=list)
    next_at = UnicodeAttribute(null=True)
    placement = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()


_LONGEST = 100_000  # bytes of an endpoint in a file: it gets a sentence more where it is brought in


_endpoints = own_partition(ENDPOINTS)
_secrets = own_partition(SECRETS)


def _fit_endpoint(item: Raw, arrival: TenantArrival) -> Raw:
    """Pause an endpoint that comes without its secret."""
    if arrival.with_secrets:
        return item
    why = {
        "S": gettext_noop("This desk was imported without secrets. Replace the secret of this endpoint, and resume it.")
    }
    return {**item, "state": {"S": "paused"}, "paused_because": why}


def _fit_secret(item: Raw, arrival: TenantArrival) -> Raw:
    """Give an endpoint that comes without its secret another one, which nobody knows until it is replaced."""
    return item if "current" in item else {**item, "current": {"S": new_secret()}}


def _key(tenant_id: str, item: Raw) -> tuple[str, str]:
    if not is_endpoint_id(item["endpoint_id"]["S"]):
        raise ValueError("this is no id of an endpoint")
    return tenant_id, item["endpoint_id"]["S"]


def _endpoint_forms() -> tuple[RowForm, ...]:
    checks = {
        "state": row_forms.one_of("active", "paused"),
        "event_types": row_forms.texts,
        **row_forms.moments("created_at", "rotated_at"),
        **row_forms.moments_if_any("failing_since"),
    }
    return (RowForm(EndpointItem, _key, checks=checks, most_bytes=_LONGEST),)


def _secret_forms() -> tuple[RowForm, ...]:
    checks = {
        "current": is_secret,
        "previous": lambda text: not text or is_secret(text),
        **row_forms.moments_if_any("previous_until"),
        "earlier": lambda values: all(_is_earlier(*value["S"].split(" ")) for value in values),
    }
    return (RowForm(SecretItem, _key, checks=checks, most_bytes=_LONGEST),)


def _is_earlier(until: str, secret: str) -> bool:
    return clock.is_stamp(until) and is_secret(secret)


def _deliveries(reader: Reader) -> Iterator[StoredItem]:
    known = {row["endpoint_id"]["S"]: None for _, row, _ in _endpoints(reader)}
    for _, row, _ in reader.query(AUDIT, reader.tenant_id):  # an endpoint that was removed has left its log
        if is_endpoint_id(row["entity_id"]["S"]):
            known[row["entity_id"]["S"]] = None
    for endpoint in known:
        yield from reader.query(DELIVERIES, log_partition(reader.tenant_id, endpoint))


declare_holding(
    Holding("endpoints", (ENDPOINTS,), _endpoints, Stage.OWN, fit=_fit_endpoint, forms=_endpoint_forms),
    Holding(
        "webhook secrets",
        (SECRETS,),
        _secrets,
        Stage.OWN,
        secret=("current", "previous", "earlier"),
        fit=_fit_secret,
        forms=_secret_forms,
    ),
    Holding("delivery log", (DELIVERIES,), _deliveries, Stage.BESIDE, left_out="it tells of calls of some weeks"),
)
declare_people("endpoints", "delivery.webhooks.endpoints")
declare_texts("delivery log", "delivery.webhooks.delivery_log")


declare_keys(ENDPOINTS, {"webhook": ""})
declare_keys(SECRETS, {"webhook secret": ""})
declare_keys(DELIVERIES, {"delivery": ""})
