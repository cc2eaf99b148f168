"""Declare the endpoints of a tenant, their secrets, and the log of what was sent to them."""

from __future__ import annotations

from collections.abc import Iterator

from delivery.webhooks.items import EndpointItem, SecretItem
from delivery.webhooks.keys import deliveries, is_endpoint_id
from delivery.webhooks.signatures import is_secret, new_secret
from delivery.webhooks.tables import DELIVERIES, ENDPOINTS, SECRETS
from portal import clock
from portal.schema import row_forms
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from portal.schema.row_forms import RowForm
from tenants.audit_trail.stored import AUDIT

_LONGEST = 100_000  # bytes of an endpoint in a file: it gets a sentence more where it is brought in


def _endpoints(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(ENDPOINTS, reader.tenant_id)


def _secrets(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(SECRETS, reader.tenant_id)


def _fit_endpoint(item: Raw, arrival: TenantArrival) -> Raw:
    """Pause an endpoint that comes without its secret."""
    if arrival.with_secrets:
        return item
    why = {"S": "This desk was imported without secrets. Replace the secret of this endpoint, and resume it."}
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
        yield from reader.query(DELIVERIES, deliveries(reader.tenant_id, endpoint))


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
