"""Credentials of one tenant: fetched once, renewed in time, and no way around them."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError, EndpointConnectionError

from portal.isolation.credentials import (
    REFRESH_BEFORE,
    SESSION,
    ContextCredentials,
    CredentialsRefused,
    TenantCredentials,
)
from portal.isolation.guard import IsolationError, acting_for, current_tenant

A, B = "a" * 32, "b" * 32


class Sts:
    """Stands in for STS where time and failure matter; the real one is tried in test_tenant_role.py."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.calls: Counter[str] = Counter()
        self.error: Exception | None = None

    def assume(self, tenant_id: str) -> tuple[ReadOnlyCredentials, float]:
        self.calls[tenant_id] += 1
        if self.error is not None:
            raise self.error
        name = f"{tenant_id[:4]}-{self.calls[tenant_id]}"
        return ReadOnlyCredentials(name, tenant_id + "s" * 8, tenant_id * 32, None), self.now + SESSION

    def cache(self, **options: int) -> TenantCredentials:
        return TenantCredentials(self.assume, clock=lambda: self.now, **options)


def denied() -> ClientError:
    return ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")


def test_a_tenant_is_fetched_once_in_fifty_minutes() -> None:
    sts = Sts()
    cache = sts.cache()
    for _ in range(SESSION - REFRESH_BEFORE):
        cache.get(A)
        sts.now += 1
    assert sts.calls[A] == 1
    cache.get(A)
    assert sts.calls[A] == 2
    assert SESSION - REFRESH_BEFORE == 50 * 60


def test_many_threads_cause_one_fetch_per_tenant() -> None:
    sts = Sts()
    cache = sts.cache()
    gate = threading.Barrier(16)

    def work(n: int) -> str:
        gate.wait()
        return cache.get(A if n % 2 else B).access_key

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(work, range(16)))
    assert sts.calls == {A: 1, B: 1}
    assert found == [f"{'a' * 4 if n % 2 else 'b' * 4}-1" for n in range(16)]


def test_a_refusal_refuses_the_request_and_nothing_else_signs_it() -> None:
    sts = Sts()
    sts.error = denied()
    with pytest.raises(CredentialsRefused):
        sts.cache().get(A)


def test_a_refusal_also_ends_credentials_that_would_last_a_little_longer() -> None:
    sts = Sts()
    cache = sts.cache()
    cache.get(A)
    sts.now += SESSION - 60
    sts.error = denied()
    for _ in range(2):
        with pytest.raises(CredentialsRefused):
            cache.get(A)


def test_an_sts_that_is_away_is_no_matter_while_the_credentials_last() -> None:
    sts = Sts()
    cache = sts.cache()
    first = cache.get(A)
    sts.now += SESSION - 60
    sts.error = EndpointConnectionError(endpoint_url="x")
    assert cache.get(A) == first
    sts.now += 61
    with pytest.raises(CredentialsRefused):
        cache.get(A)


def test_after_a_refusal_the_next_request_asks_again() -> None:
    sts = Sts()
    cache = sts.cache()
    sts.error = denied()
    with pytest.raises(CredentialsRefused):
        cache.get(A)
    sts.error = None
    assert cache.get(A).access_key == "aaaa-2"


@pytest.mark.parametrize("tenant", ["", "*", "a*", "?" * 32, A.upper(), A + "\n", "\u0430" * 32])
def test_what_is_no_tenant_id_never_becomes_a_tag(tenant: str) -> None:
    sts = Sts()
    with pytest.raises(ValueError, match="tenant id"):
        sts.cache().get(tenant)
    assert not sts.calls


def test_each_signing_uses_the_tenant_of_its_own_context() -> None:
    sts = Sts()
    signer = ContextCredentials(sts.cache(), current_tenant)

    def sign(tenant: str) -> bool:
        with acting_for(tenant):
            return all(signer.get_frozen_credentials().access_key == f"{tenant[:4]}-1" for _ in range(200))

    tenants = [f"{n:032x}"[::-1] for n in range(50)]
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(sign, tenants * 4))
    assert set(sts.calls.values()) == {1}


def test_without_a_tenant_nothing_is_signed() -> None:
    signer = ContextCredentials(Sts().cache(), current_tenant)
    with pytest.raises(IsolationError):
        signer.get_frozen_credentials()


def test_the_cache_is_bounded() -> None:
    sts = Sts()
    cache = sts.cache(size=10)
    for n in range(100):
        cache.get(f"{n:032x}")
    assert len(cache._entries) == 10


def test_ten_thousand_tenants_fit_into_fifty_megabytes() -> None:
    sts = Sts()
    tracemalloc.start()
    cache = sts.cache()
    for n in range(10_000):
        cache.get(f"{n:032x}")
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 50_000_000
