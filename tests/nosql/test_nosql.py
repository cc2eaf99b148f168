"""Django without a relational database: SQL is refused everywhere, and what Django expects of one still holds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.base import UpdateError
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection, connections, models, transaction
from django.test import override_settings

from portal.dynamo import meter
from portal.nosql.session_store import SessionStore, read
from portal.nosql.stored import SessionItem
from tenants.sign_in.accounts import User
from tests.support.commands import run
from tests.support.production import settings_of

# --- SQL ---

STATEMENTS: dict[str, Callable[[], Any]] = {
    "cursor": lambda: connection.cursor(),
    "cursor in a block": lambda: connection.cursor().__enter__().execute("SELECT 1"),
    "chunked cursor": lambda: connection.chunked_cursor(),
    "cursor inside atomic": lambda: transaction.atomic(lambda: connection.cursor())(),
    "all": lambda: list(User.objects.all()),
    "get": lambda: User.objects.get(pk="a" * 32),
    "filter": lambda: list(User.objects.filter(email="alice@example.com")),
    "count": lambda: User.objects.count(),
    "exists": lambda: User.objects.exists(),
    "create": lambda: User.objects.create(email="x@example.com"),
    "bulk_create": lambda: User.objects.bulk_create([User(id="a" * 32)]),
    "get_or_create": lambda: User.objects.get_or_create(email="x@example.com"),
    "update": lambda: User.objects.update(is_operator=True),
    "delete": lambda: User.objects.all().delete(),
    "raw": lambda: list(User.objects.raw("SELECT * FROM tenants_user")),
    "save": lambda: User(id="a" * 32).save(),
    "save of some fields": lambda: User(id="a" * 32).save(update_fields=["name"]),
    "save_base": lambda: User(id="a" * 32).save_base(),
    "delete of one": lambda: User(id="a" * 32).delete(),
    "refresh": lambda: User(id="a" * 32).refresh_from_db(),
    "base manager": lambda: list(User._base_manager.all()),
    "default manager": lambda: list(User._default_manager.all()),
    "a query set by hand": lambda: list(models.QuerySet(User).filter(pk="x")),
    "a query set's delete": lambda: models.QuerySet(User).filter(pk="x").delete(),
    "a query set's update": lambda: models.QuerySet(User).update(is_operator=True),
    "content types": lambda: list(ContentType.objects.all()),
    "content type of a model": lambda: ContentType.objects.get_for_model(Permission),
    "permissions": lambda: list(Permission.objects.all()),
    "migrate": lambda: call_command("migrate", verbosity=0),
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_sql_is_refused(statement: Callable[[], Any]) -> None:
    ContentType.objects.clear_cache()
    with pytest.raises(ImproperlyConfigured, match="Pooldesk has no relational database"):
        statement()


def test_tables_cannot_be_made_with_sql() -> None:
    with pytest.raises(NotImplementedError):
        connection.schema_editor()


def test_there_is_one_database_and_it_is_none() -> None:
    assert [*connections] == ["default"]
    assert connection.vendor == "none"


# --- transactions ---


def on_commit(ran: list[str], name: str) -> None:
    transaction.on_commit(partial(ran.append, name))


def test_hooks_run_in_order_when_the_outermost_block_has_ended_and_at_once_outside_of_one() -> None:
    ran: list[str] = []
    on_commit(ran, "outside")
    assert ran == ["outside"]

    def hook_with_a_block() -> None:
        with transaction.atomic():
            on_commit(ran, "hook of a hook")

    with transaction.atomic():
        assert connection.in_atomic_block
        on_commit(ran, "first")
        with transaction.atomic():
            on_commit(ran, "inner")
        with transaction.atomic(savepoint=False):
            transaction.on_commit(hook_with_a_block)
        on_commit(ran, "last")
        ran.append("block")
    assert ran == ["outside", "block", "first", "inner", "hook of a hook", "last"]
    assert not connection.in_atomic_block


@pytest.mark.parametrize(("savepoint", "left"), [(True, ["before", "after"]), (False, [])])
def test_an_inner_block_that_fails_takes_the_outer_ones_hooks_along_only_without_a_savepoint(
    savepoint: bool, left: list[str]
) -> None:
    ran: list[str] = []

    @transaction.atomic(savepoint=savepoint)
    def fail() -> None:
        on_commit(ran, "inner")
        raise ZeroDivisionError

    with transaction.atomic():
        on_commit(ran, "before")
        with pytest.raises(ZeroDivisionError):
            fail()
        if savepoint:
            on_commit(ran, "after")
    with transaction.atomic():
        pass
    assert ran == left
    assert not connection.in_atomic_block


def test_a_hook_that_fails_stops_those_behind_it_and_is_raised() -> None:
    ran: list[str] = []
    block = transaction.atomic()
    block.__enter__()
    for hook in (partial(ran.append, "first"), lambda: 1 / 0, partial(ran.append, "behind")):
        transaction.on_commit(hook)
    with pytest.raises(ZeroDivisionError):
        block.__exit__(None, None, None)
    with transaction.atomic():
        on_commit(ran, "next block")
    assert ran == ["first", "next block"]


def test_blocks_send_nothing(bill: meter.Meter) -> None:
    with transaction.atomic(), transaction.atomic():
        pass
    assert bill.calls == []


# --- sessions ---


@pytest.fixture
def stored(engine: None) -> SessionStore:
    """A session with one value, saved."""
    session = SessionStore()
    session["cart"] = {"é": [1, None, True]}
    session.save()
    return session


def reopened(session: SessionStore) -> SessionStore:
    return SessionStore(session.session_key)


def item_of(session: SessionStore) -> SessionItem:
    item = read(session.session_key or "")
    assert item is not None
    return item


def expire(session: SessionStore) -> SessionItem:
    """The time has come, and TTL has not."""
    item = item_of(session)
    item.expires_at = int(time.time()) - 1
    item.save()
    return item


def test_a_session_is_what_was_saved(stored: SessionStore) -> None:
    assert reopened(stored)["cart"] == {"é": [1, None, True]}
    assert stored.exists(stored.session_key or "")
    assert len(stored.session_key or "") == 32


def test_nothing_is_written_before_a_session_is_saved_under_a_key_of_its_own(engine: None) -> None:
    sessions = [SessionStore() for _ in range(5)]
    for session in sessions:
        session["a"] = 1
        assert session.session_key is None
        session.save()
        assert item_of(session)
    assert len({session.session_key for session in sessions}) == 5


def test_a_key_that_is_taken_is_not_taken_over(stored: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = iter([stored.session_key, "n" * 32])
    monkeypatch.setattr(SessionStore, "_get_new_session_key", lambda self: next(offered))
    other = SessionStore()
    other.create()
    assert other.session_key == "n" * 32
    assert reopened(stored)["cart"]


@pytest.mark.parametrize("key", ["x" * 32, "", "short", "../../x", "\0" * 32])
def test_a_session_that_does_not_exist_is_empty_and_loses_its_key(engine: None, key: str) -> None:
    session = SessionStore(key)
    assert session.get("cart") is None
    assert session.session_key is None
    assert session.is_empty()


def test_an_expired_session_is_refused_though_ttl_has_not_removed_it(stored: SessionStore) -> None:
    expired = SessionStore.from_item(expire(stored), stored.session_key or "")
    for session in (reopened(stored), expired):
        assert session.get("cart") is None
        assert session.session_key is None


@pytest.mark.parametrize("write", [True, False])
def test_an_expired_session_does_not_come_back_under_its_old_key(stored: SessionStore, write: bool) -> None:
    old = expire(stored)
    for session in (reopened(stored), SessionStore.from_item(old, stored.session_key or "")):
        if write:
            session["cart"] = "new"
        session.save()
        assert session.session_key not in (None, stored.session_key)
    assert item_of(stored).expires_at < time.time()


def test_data_that_was_altered_is_an_empty_session(stored: SessionStore) -> None:
    item = item_of(stored)
    item.data = item.data[:-1] + ("A" if item.data[-1] != "A" else "B")
    item.save()
    assert dict(reopened(stored).items()) == {}


def test_a_session_lasts_as_long_as_its_cookie(stored: SessionStore) -> None:
    assert abs(item_of(stored).expires_at - time.time() - django_settings.SESSION_COOKIE_AGE) < 60
    stored.set_expiry(300)
    stored.save()
    assert abs(item_of(stored).expires_at - time.time() - 300) < 60


def test_saving_again_replaces_the_data(stored: SessionStore) -> None:
    del stored["cart"]
    stored["other"] = 1
    stored.save()
    assert dict(reopened(stored).items()) == {"other": 1}


def test_a_cycled_session_keeps_its_data_and_loses_its_key(stored: SessionStore) -> None:
    old = stored.session_key
    stored.cycle_key()
    stored.save()
    assert stored.session_key not in (None, old)
    assert reopened(stored)["cart"] == {"é": [1, None, True]}
    assert read(old or "") is None


def test_a_deleted_or_flushed_session_is_gone(stored: SessionStore) -> None:
    flushed = reopened(stored)
    flushed["cart"] = {}
    SessionStore().delete(stored.session_key)
    assert reopened(stored).get("cart") is None
    stored.delete()  # once more does no harm
    SessionStore().delete()
    flushed.cycle_key()
    old = flushed.session_key
    flushed.flush()
    assert (flushed.session_key, flushed.is_empty()) == (None, True)
    assert read(old or "") is None


def test_a_session_deleted_meanwhile_is_not_saved_again(stored: SessionStore) -> None:
    other_tab = reopened(stored)
    assert other_tab["cart"]
    stored.flush()
    other_tab["cart"] = "late"
    with pytest.raises(UpdateError):
        other_tab.save()
    assert read(other_tab.session_key or "") is None


def test_creating_reading_saving_and_deleting_are_one_call_each(stored: SessionStore) -> None:
    def cost(call: Callable[[], Any]) -> int:
        with meter.measure() as bill:
            call()
        return len(bill.calls)

    item = item_of(stored)
    assert cost(lambda: SessionStore.from_item(item, stored.session_key or "")["cart"]) == 0
    assert cost(SessionStore.clear_expired) == 0
    assert cost(lambda: SessionStore().create()) == 1
    assert cost(lambda: reopened(stored).get("cart")) == 1
    assert cost(stored.save) == 1
    assert cost(stored.flush) == 1


# --- commands ---


def test_the_checks_find_nothing() -> None:  # in production neither: tests/deployment/test_deploy_checks.py
    with override_settings(**settings_of(DEBUG="true", DYNAMODB_ENDPOINT_URL="http://127.0.0.1:9")):
        ended = run("check", "--fail-level", "WARNING")
    assert (ended.status, "no issues" in ended.out) == (0, True), ended.err


def test_there_is_nothing_to_migrate() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended = run("makemigrations", "--check", "--dry-run")
    assert ended.status == 0, ended.out + ended.err
    assert "No changes detected" in ended.out
