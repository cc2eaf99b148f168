"""Objects of a tenant: stored, listed and refused to others, by the guard and by the policy alike."""

from __future__ import annotations

import base64
import json

import pytest
import urllib3
from django.conf import settings
from django.test import override_settings

from portal.errors import NotFound, Unavailable
from portal.isolation import guard, object_guard, policies
from portal.isolation.guard import IsolationError
from portal.objects import object_store
from portal.objects.object_store import ObjectStore, TooLarge, tenant_key, tenant_prefix
from portal.schema import registry
from portal.schema.registry import ObjectGrant

ACME, GLOBEX = "a" * 32, "b" * 32
GRANTS = (
    ObjectGrant("tenant", "tenant/{tenant}/things/", ("GetObject", "PutObject")),
    ObjectGrant("tenant", "tenant/{tenant}/sent/", ("GetObject", "GetObjectTagging", "PutObject", "PutObjectTagging")),
    ObjectGrant("lifecycle", "tenant/{tenant}/", ("DeleteObject", "GetObject", "ListBucket")),
    ObjectGrant("worker", "arrived/", ("GetObject", "PutObject", "DeleteObject", "ListBucket")),
)


@pytest.fixture(autouse=True)
def _bucket(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_object_grants", dict.fromkeys(GRANTS))
    object_store.reset()
    object_store.create_bucket()
    yield
    object_store.reset()


def test_a_tenant_reads_back_what_it_stored_and_another_finds_it_under_its_own_key_only() -> None:
    mine, theirs = ObjectStore("tenant", ACME), ObjectStore("tenant", GLOBEX)
    mine.put(tenant_key(ACME, "things", "one.eml"), b"of Acme")
    assert mine.get(tenant_key(ACME, "things", "one.eml"), most=100) == b"of Acme"
    assert theirs.size(tenant_key(GLOBEX, "things", "one.eml")) is None
    with pytest.raises(NotFound):
        theirs.get(tenant_key(GLOBEX, "things", "one.eml"), most=100)
    with pytest.raises(IsolationError):
        theirs.get(tenant_key(ACME, "things", "one.eml"), most=100)


@pytest.mark.parametrize(
    "key",
    [
        f"tenant/{GLOBEX}/things/one",
        f"tenant/{ACME}/../{GLOBEX}/things/one",
        f"tenant/{ACME}/things/../../{GLOBEX}/things/one",
        f"tenant//{ACME}/things/one",
        f"tenant/{ACME.upper()}/things/one",
        f"/tenant/{ACME}/things/one",
        f"tenant/{ACME}/things/",
        f"tenant/{ACME}/things/..",
        f"tenant/{ACME}/things/a b",
        f"tenant/{ACME}/things/%2e%2e",
        f"tenant/{ACME}/others/one",
        f"tenant/{ACME}",
        "tenant/*/things/one",
        "arrived/one",
        "",
        "one",
    ],
)
def test_a_tenant_writes_and_reads_under_its_own_keys_alone(key: str) -> None:
    store = ObjectStore("tenant", ACME)
    with pytest.raises(IsolationError):
        store.put(key, b"x")
    with pytest.raises(IsolationError):
        store.get(key, most=10)
    with pytest.raises(IsolationError):
        store.upload_form(key, content_type="text/plain", size=1, seconds=60, tags={})
    with pytest.raises(IsolationError):
        store.download_url(key, name="one", seconds=60)
    with pytest.raises(IsolationError):
        store.beginning(key, most=10)
    with pytest.raises(IsolationError):
        store.pieces(key)
    with pytest.raises(IsolationError):
        store.tag(key, {"a": "b"})
    with pytest.raises(IsolationError):
        store.tags(key)
    own, how = tenant_key(ACME, "sent", "one"), {"content_type": "text/plain", "tags": {"a": "b"}}
    with pytest.raises(IsolationError):
        store.copy(own, key, **how)
    with pytest.raises(IsolationError):
        store.copy(key, own, **how)


def test_an_object_is_copied_without_its_tags_and_with_a_type_of_ours() -> None:
    store, source, key = ObjectStore("tenant", ACME), tenant_key(ACME, "sent", "one"), tenant_key(ACME, "sent", "two")
    store.put(source, b"content", content_type="text/html", about={"a": "b"})
    store.tag(source, {"state": "new"})
    store.copy(source, key, content_type="text/plain", tags={"state": "kept & used"})
    assert store.get_with_about(key, most=100) == (b"content", {})
    assert store.tags(key) == {"state": "kept & used"}
    with pytest.raises(NotFound):
        store.copy(tenant_key(ACME, "sent", "none"), key, content_type="text/plain", tags={})


@pytest.mark.parametrize("source", ["{bucket}", "other-bucket/{key}", "{key}", "arn:aws:s3:::{bucket}/{key}"])
def test_a_copy_has_its_source_in_the_same_bucket(source: str) -> None:
    key = tenant_key(ACME, "sent", "one")
    check = object_guard.check_of("tenant", settings.MAIL_BUCKET)
    copied = source.format(bucket=settings.MAIL_BUCKET, key=key)
    with pytest.raises(IsolationError), guard.acting_for(ACME):
        check("CopyObject", {"Bucket": settings.MAIL_BUCKET, "Key": key, "CopySource": copied})


@pytest.mark.parametrize(
    ("role", "tenant", "call"),
    [
        ("tenant", ACME, lambda s: s.delete(tenant_key(ACME, "things", "one"))),  # not granted
        ("tenant", ACME, lambda s: [*s.list(tenant_prefix(ACME))]),
        ("worker", None, lambda s: s.get(tenant_key(ACME, "things", "one"), most=9)),
        ("worker", None, lambda s: [*s.list("tenant/")]),
        ("lifecycle", None, lambda s: s.get(tenant_key(ACME, "things", "one"), most=9)),  # for nobody
        ("lifecycle", GLOBEX, lambda s: s.get(tenant_key(ACME, "things", "one"), most=9)),
        ("lifecycle", GLOBEX, lambda s: [*s.list(tenant_prefix(ACME))]),
        ("lifecycle", GLOBEX, lambda s: [*s.list("tenant/")]),
        ("platform", None, lambda s: s.put("arrived/one", b"x")),
    ],
)
def test_a_role_does_with_objects_what_it_was_granted_and_no_more(role, tenant, call) -> None:
    with pytest.raises(IsolationError):
        call(ObjectStore(role, tenant))


def test_a_tenants_objects_need_a_tenant_that_is_acted_for() -> None:
    with pytest.raises(IsolationError):
        ObjectStore("tenant").get(tenant_key(ACME, "things", "one"), most=9)


def test_a_form_is_signed_for_one_key_type_and_size_of_the_tenants_and_for_a_moment() -> None:
    key = tenant_key(ACME, "sent", "one")
    form = ObjectStore("tenant", ACME).upload_form(
        key, content_type="application/pdf", size=7, seconds=60, tags={"state": "new"}
    )
    policy = json.loads(base64.b64decode(form.fields["policy"]))
    assert {"bucket": settings.MAIL_BUCKET} in policy["conditions"]
    assert {"key": key} in policy["conditions"]
    assert {"Content-Type": "application/pdf"} in policy["conditions"]
    assert ["content-length-range", 7, 7] in policy["conditions"]
    assert {"tagging": "<Tagging><TagSet><Tag><Key>state</Key><Value>new</Value></Tag></TagSet></Tagging>"} in (
        policy["conditions"]
    )
    assert all(isinstance(one, dict) or one[0] == "content-length-range" for one in policy["conditions"])  # all exact
    with pytest.raises(IsolationError):  # a kind whose objects have no tags
        ObjectStore("tenant", ACME).upload_form(
            tenant_key(ACME, "things", "one"), content_type="application/pdf", size=7, seconds=60, tags={}
        )


def test_a_signed_address_leads_to_one_object_that_is_saved_and_never_shown() -> None:
    store, key = ObjectStore("tenant", ACME), tenant_key(ACME, "sent", "page")
    store.put(key, b"<script>", content_type="text/html")
    url = store.download_url(key, name='odd "name" ü.html', seconds=60)
    got = urllib3.request("GET", url)
    assert (got.status, got.data, got.headers["Content-Type"]) == (200, b"<script>", "application/octet-stream")
    assert got.headers["Content-Disposition"].startswith("attachment; ")
    assert urllib3.request("GET", url.replace(ACME, GLOBEX)).status == 403
    assert urllib3.request("GET", url.replace("attachment", "inline")).status == 403


def test_the_beginning_the_size_and_the_pieces_of_an_object_are_read() -> None:
    store, key = ObjectStore("tenant", ACME), tenant_key(ACME, "sent", "long")
    store.put(key, b"x" * 150_000)
    assert store.beginning(key, most=4) == (b"xxxx", 150_000)
    assert [len(piece) for piece in store.pieces(key)] == [65536, 65536, 18928]
    store.put(key, b"")
    assert store.beginning(key, most=4) == (b"", 0)
    with pytest.raises(NotFound):
        store.pieces(tenant_key(ACME, "sent", "none"))


def test_the_tags_of_an_object_are_replaced() -> None:
    store, key = ObjectStore("tenant", ACME), tenant_key(ACME, "sent", "tagged")
    store.put(key, b"x")
    store.tag(key, {"state": "new"})
    store.tag(key, {"state": "kept"})
    assert store.tags(key) == {"state": "kept"}


def test_objects_are_listed_page_by_page_in_the_order_of_their_keys() -> None:
    store = ObjectStore("worker")
    for name in ("c", "a", "b"):
        store.put(f"arrived/{name}", name.encode())
    assert [found.key for found in store.list("arrived/", page=2)] == ["arrived/a", "arrived/b", "arrived/c"]
    store.delete("arrived/b")
    assert [(found.key, found.size) for found in store.list("arrived/")] == [("arrived/a", 1), ("arrived/c", 1)]


def test_an_object_that_is_too_large_is_not_read() -> None:
    store = ObjectStore("worker")
    store.put("arrived/large", b"x" * 11)
    with pytest.raises(TooLarge):
        store.get("arrived/large", most=10)
    assert store.get("arrived/large", most=11) == b"x" * 11


def test_a_store_that_cannot_be_reached_is_unavailable() -> None:
    object_store.reset()
    with override_settings(S3_ENDPOINT_URL="http://127.0.0.1:9"), pytest.raises(Unavailable):
        ObjectStore("worker").size("arrived/one")


def test_the_policy_of_the_tenant_role_says_the_same_as_the_guard() -> None:
    policy = policies.Policy(policies.document("tenant"))

    def may(action: str, key: str, tag: str | None) -> bool:
        return policy.allows(policies.Request(f"s3:{action}", policies.object_arn(key), (), tag))

    assert may("GetObject", f"tenant/{ACME}/things/one", ACME)
    assert not may("GetObject", f"tenant/{ACME}/things/one", GLOBEX)
    assert not may("GetObject", f"tenant/{ACME}/things/one", None)
    assert not may("DeleteObject", f"tenant/{ACME}/things/one", ACME)


def test_a_list_needs_the_prefix_of_the_grant() -> None:
    policy = policies.Policy(policies.document("worker"))

    def may(*prefix: str) -> bool:
        return policy.allows(policies.Request("s3:ListBucket", policies.object_arn(), prefix))

    assert may("arrived/")
    assert not may("tenant/")
    assert not may()


@pytest.mark.parametrize(
    ("role", "prefix"), [("tenant", "arrived/"), ("tenant", "tenant/"), ("worker", "arrived"), ("tenant", "tenant/x/")]
)
def test_a_grant_that_is_no_tenants_or_ends_in_a_name_cannot_be_declared(role, prefix: str) -> None:
    with pytest.raises(ValueError, match=r"right|midst"):
        ObjectGrant(role, prefix, ("GetObject",))


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "a b", "\n", "x" * 201])
def test_a_key_is_made_of_plain_names(name: str) -> None:
    with pytest.raises(ValueError, match="name of an object"):
        tenant_key(ACME, "things", name)
    with pytest.raises(ValueError, match="tenant id"):
        tenant_key("acme", "things", "one")


def test_the_bucket_is_made_once() -> None:
    assert settings.MAIL_BUCKET == "pooldesk-mail"
    assert not object_store.create_bucket()
    with guard.acting_for(ACME):
        assert ObjectStore("worker").size("arrived/nothing") is None
