"""The third layer against a real STS: each tenant's requests are signed with the role assumed for that tenant."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import botocore.session
import pytest
from django.conf import LazySettings

from portal.dynamo import client
from portal.errors import Unavailable
from tests.support.world import World
from tickets.desk import creating
from tickets.ticket import stored
from tickets.ticket.stored import CounterItem

ROLE = "arn:aws:iam::000000000000:role/pooldesk-tenant"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
        }
    ],
}


@pytest.fixture
def with_role(world: World, settings: LazySettings) -> Iterator[World]:
    session = botocore.session.Session()
    session.set_credentials("test", "test")
    iam = session.create_client("iam", settings.AWS_REGION, endpoint_url=settings.DYNAMODB_ENDPOINT_URL)
    iam.create_role(RoleName="pooldesk-tenant", AssumeRolePolicyDocument=json.dumps(TRUST))
    settings.TENANT_ROLE_ARN = ROLE
    settings.STS_ENDPOINT_URL = settings.DYNAMODB_ENDPOINT_URL
    client.reset()
    yield world
    client.reset()


def signatures(world: World) -> dict[str, set[str]]:
    """Access keys by scope from here on, read from what is sent."""
    seen: dict[str, set[str]] = defaultdict(set)
    for scope in ("tenant", "platform"):

        def note(request: Any, scope: str = scope, **_: Any) -> None:
            header = request.headers["Authorization"]
            text = header.decode() if isinstance(header, bytes) else header
            found = re.search(r"Credential=([^/]+)/", text)
            assert found is not None
            seen[scope].add(found[1])

        client.connection(scope).client.meta.events.register_last("before-send.dynamodb", note)
    return seen


def test_the_portal_works_under_the_role(with_role: World) -> None:
    with_role.tickets("acme", 2)
    assert with_role.browser("bob").get("/tickets/1/").status_code == 200


def test_a_tenants_requests_carry_that_tenants_credentials(with_role: World) -> None:
    seen = signatures(with_role)
    with_role.tickets("acme", 1)
    (acme,) = seen["tenant"]
    seen["tenant"].clear()
    with_role.tickets("globex", 1)
    (globex,) = seen["tenant"]
    assert acme != globex
    assert {acme, globex}.isdisjoint(seen["platform"])


def test_one_client_serves_both_tenants(with_role: World) -> None:
    before = client.connection("tenant").client
    with_role.tickets("acme", 1)
    with_role.tickets("globex", 1)
    assert client.connection("tenant").client is before


def test_sixteen_threads_never_mix_tenants_up(with_role: World) -> None:
    by_tenant: dict[str, set[str]] = defaultdict(set)

    def note(request: Any, **_: Any) -> None:
        header = request.headers["Authorization"]
        text = header.decode() if isinstance(header, bytes) else header
        body = request.body.decode() if isinstance(request.body, bytes) else request.body
        tenant = re.search(r"TENANT#([0-9a-f]{32})", body)
        key = re.search(r"Credential=([^/]+)/", text)
        assert tenant is not None
        assert key is not None
        by_tenant[tenant[1]].add(key[1])

    client.connection("tenant").client.meta.events.register_last("before-send.dynamodb", note)
    contexts = [with_role.context("alice", "acme"), with_role.context("charlie", "globex")]
    with ThreadPoolExecutor(16) as pool:
        list(
            pool.map(
                lambda n: contexts[n % 2].repository.increment(CounterItem, stored.counter, sort="TICKET"), range(200)
            )
        )
    assert [len(found) for found in by_tenant.values()] == [1, 1]
    assert len(set.union(*by_tenant.values())) == 2


def test_a_role_that_cannot_be_assumed_refuses_the_request(with_role: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import ClientError

    from portal.isolation import credentials

    def refused(sts: object, arn: str) -> object:
        def assume(tenant: str) -> object:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")

        return assume

    tenant = with_role.context("alice", "acme")
    monkeypatch.setattr(credentials, "assume_with", refused)
    client.reset()
    with pytest.raises(Unavailable):
        creating.create(tenant, title="never")
    assert with_role.browser("bob").get("/tickets/").status_code == 503
