"""Form the keys of answers that are kept."""

from __future__ import annotations

from portal.schema import keys


def answer(tenant_id: str, caller: str, method: str, address: str, idempotency_key: str) -> str:
    """Return the partition key of the answer to one request of one caller. Its parts may be any texts, so their digest
    stands."""
    return _of(tenant_id, "ANSWER", caller, method, address, idempotency_key)


def pooled_answer(tenant_id: str, caller: str, method: str, address: str, idempotency_key: str) -> str:
    """Return the same for a request that changes what lies in the pool for everybody: no move takes it along."""
    return _of(tenant_id, "POOLED", caller, method, address, idempotency_key)


def _of(tenant_id: str, name: str, *request: str) -> str:
    return keys.collection(tenant_id, name, keys.digest("\0".join(request)))
