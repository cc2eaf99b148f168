"""Declare how answers to requests with an idempotency key are stored: table, keys, items and holdings."""

from __future__ import annotations

from collections.abc import Iterator

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding, declare_texts
from portal.schema.registry import Grant, Table, declare


def answer(tenant_id: str, caller: str, method: str, address: str, idempotency_key: str) -> str:
    """Return the partition key of the answer to one request of one caller. Its parts may be any texts, so their digest
    stands."""
    return _of(tenant_id, "ANSWER", caller, method, address, idempotency_key)


def pooled_answer(tenant_id: str, caller: str, method: str, address: str, idempotency_key: str) -> str:
    """Return the same for a request that changes what lies in the pool for everybody: no move takes it along."""
    return _of(tenant_id, "POOLED", caller, method, address, idempotency_key)


def _of(tenant_id: str, name: str, *request: str) -> str:
    return keys.collection(tenant_id, name, keys.digest("\0".join(request)))


ANSWERS = Table(
    "Api.Answers",
    "tenant",
    "pk",
    ttl="expires_at",
    leading_keys=keys.OWN_COLLECTIONS,
    placed=True,
    copied=("ANSWER",),
)


class TenantAnswer(IndexModel):
    """The key of a tenant's answer."""

    table = ANSWERS
    label = "gsi-tenant"
    leading_keys = keys.OWN_ID

    tenant_id = UnicodeAttribute(hash_key=True)
    pk = UnicodeAttribute(range_key=True)


declare(
    ANSWERS,
    grants=(
        Grant("tenant", ANSWERS, ("GetItem", "Query", "UpdateItem")),
        # Changes of webhooks are written by the platform role, and their answers with them.
        Grant("platform", ANSWERS, ("UpdateItem",)),
        Grant("lifecycle", ANSWERS, ("PutItem",), "CopyAnswers"),
    ),
)


class AnswerItem(Item):
    """The response to a request with an idempotency key, or the claim of a running request. Removed by TTL after a day.

    `digest` is that of the request's body. `claim` is whose turn it is, a new one each time, and `claimed_until` the
    second since 1970 until which nobody else takes it. Then the answer: `status`, `headers` as JSON, and the `body`,
    compressed.
    """

    table = ANSWERS

    pk = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(null=True)
    digest = UnicodeAttribute()
    claim = UnicodeAttribute()
    claimed_until = NumberAttribute()
    status = NumberAttribute(null=True)
    headers = UnicodeAttribute(null=True)
    body = BinaryAttribute(legacy_encoding=False, null=True)
    expires_at = NumberAttribute()


def _answers(reader: Reader) -> Iterator[StoredItem]:
    for place in reader.places:  # answers about webhooks are written in the pool
        named = place.query(ANSWERS, reader.tenant_id, index=TenantAnswer.gsi)
        yield from place.get(ANSWERS, *((one.item["pk"]["S"], None) for one in named))


declare_holding(
    Holding("answers", (ANSWERS,), _answers, Stage.BESIDE, left_out="each is forgotten a day after its request")
)
declare_texts("answers", "api.edge.answer_redacting")


declare_keys(
    ANSWERS,
    {"API answer": "TENANT#<tenant>|ANSWER#<key>", "API answer in the pool": "TENANT#<tenant>|POOLED#<key>"},
    indexes={"API answers by time": "gsi-tenant"},
)
