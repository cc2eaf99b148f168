"""A silo in another account is entered by roles of that account: for its own desk alone, and never without."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from django.conf import LazySettings

from portal import aws_session
from portal.dynamo import client
from portal.errors import Unavailable
from portal.isolation import credentials
from portal.isolation.credentials import CredentialsRefused
from tests.support import placed
from tests.support.commands import run
from tests.support.world import World
from tickets.desk import creating

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
ROLES = ("tenant", "worker", "platform")


@pytest.fixture
def silo(world: World, settings: LazySettings) -> Iterator[World]:
    """Acme lies at a site with a role for each connection, Globex in the pool, where nobody assumes any."""
    session = botocore.session.Session()
    session.set_credentials("test", "test")
    iam = session.create_client("iam", settings.AWS_REGION, endpoint_url=settings.DYNAMODB_ENDPOINT_URL)
    arns = {}
    for name in ROLES:
        made = iam.create_role(RoleName=f"silo-{name}", AssumeRolePolicyDocument=json.dumps(TRUST))
        arns[f"{name}_role_arn"] = made["Role"]["Arn"]
    settings.SILOS = {"there": {**placed.sites()["there"], **arns}}
    client.reset()
    placed.lay(world, "acme", placed.SILO)
    yield world
    client.reset()


class Sent:
    """The access keys of requests that leave, by the prefix of their tables."""

    def __init__(self) -> None:
        self.keys: dict[str, set[str]] = defaultdict(set)

    def listen(self, made: Any) -> None:
        made.meta.events.register_last("before-send.dynamodb", self._note)

    def _note(self, request: Any, **_: Any) -> None:
        header, body = _text(request.headers["Authorization"]), _text(request.body)
        key = re.search(r"Credential=([^/]+)/", header)
        table = re.search(r'"(\w+)\.(?:[0-9a-f]{32}\.)?[A-Z]\w+\.\w+"', body)
        assert key is not None
        assert table is not None
        self.keys[table[1]].add(key[1])


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@pytest.fixture
def sent(silo: World) -> Sent:
    found = Sent()
    shared = client.connection("tenant")
    for site in ("", "there"):
        found.listen(shared.client_at(site))
    return found


def test_the_role_of_a_site_signs_what_goes_there_and_nothing_else(
    silo: World, sent: Sent, settings: LazySettings
) -> None:
    silo.tickets("acme", 1)
    silo.tickets("globex", 1)
    assert silo.browser("alice", "acme").get("/tickets/1/").status_code == 200
    there, home = sent.keys["There"], sent.keys[settings.DYNAMODB_TABLE_PREFIX]
    assert len(there) == 1
    assert there.isdisjoint(home)
    assert home == {_text(client.connection("platform").client._request_signer._credentials.access_key)}


def test_two_desks_of_a_site_are_told_apart_by_their_credentials(silo: World, sent: Sent) -> None:
    placed.desk(silo, placed.SILO, owner="charlie")
    for slug, who in (("acme", "alice"), ("initech", "charlie")):
        creating.create(silo.context(who, slug), title="Mine")
    assert len(sent.keys["There"]) == 2


def test_workers_enter_a_site_by_its_role_for_them(silo: World) -> None:
    keys = {
        _text(made._request_signer._credentials.get_frozen_credentials().access_key)
        for made in (client.connection(role).client_at("there") for role in ("worker", "platform"))
    }
    streams = client.streams().client_at("there")._request_signer._credentials.get_frozen_credentials().access_key
    home = client.connection("worker").client._request_signer._credentials.access_key
    assert len({*keys, streams, home}) == 4


def test_the_credentials_of_a_workers_role_are_renewed_before_they_end() -> None:
    now, calls = datetime(2026, 11, 23, tzinfo=UTC), []

    class Sts:
        def assume_role(self, **asked: Any) -> dict[str, Any]:
            calls.append(asked)
            expiry = now + timedelta(seconds=credentials.SESSION)
            name = f"KEY{len(calls)}"
            found = {"AccessKeyId": name, "SecretAccessKey": "s", "SessionToken": "t", "Expiration": expiry}
            return {"Credentials": found}

    held = credentials.of_role(Sts(), "arn:aws:iam::1:role/Worker", "worker")
    held._time_fetcher = lambda: now
    assert [held.get_frozen_credentials().access_key for _ in range(3)] == ["KEY1"] * 3
    now += timedelta(seconds=credentials.SESSION - credentials.REFRESH_BEFORE)
    assert held.get_frozen_credentials().access_key == "KEY2"
    assert calls[1]["RoleArn"] == "arn:aws:iam::1:role/Worker"


def test_a_role_of_a_site_that_cannot_be_assumed_is_said_and_stops_that_desk_alone(
    silo: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    silo.tickets("globex", 1)
    acme = silo.context("alice", "acme")
    client.reset()
    _refuse(monkeypatch)
    with pytest.raises(Unavailable, match="cannot be used for this tenant"):
        creating.create(acme, title="Never")
    assert silo.browser("alice", "acme").get("/tickets/").status_code == 503
    assert silo.browser("charlie").get("/tickets/1/").status_code == 200
    assert f"The role for tenant {acme.tenant_id} could not be assumed" in caplog.text


def test_a_role_of_a_site_that_workers_cannot_assume_is_named(silo: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client.reset()
    _refuse(monkeypatch)
    with pytest.raises(CredentialsRefused, match="The role silo-worker could not be assumed"):
        placed.lay(silo, "globex", placed.SILO)
    ended = run("check_health")
    assert (ended.status, "silo-worker" in ended.err or "silo-platform" in ended.err) == (1, True)


def _refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """STS lets nobody in."""
    make = aws_session.client

    def refusing(service: str, *args: Any, **how: Any) -> Any:
        made = make(service, *args, **how)
        if service == "sts":

            def refuse(**_: Any) -> Any:
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")

            made.meta.events.register_first("before-call.sts.AssumeRole", refuse)
        return made

    monkeypatch.setattr(aws_session, "client", refusing)
