"""Django without a relational database: SQL is refused everywhere, and what Django expects of one still holds."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.base import UpdateError
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection, connections, models, transaction

from portal.dynamo import meter
from portal.nosql import stored as session_items
from portal.nosql.session_store import SessionStore, read
from portal.nosql.stored import SessionItem
from tenants.sign_in.accounts import User
from tests.support.commands import run

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
    assert connection.introspection.table_names() == []


def test_flushing_for_a_live_server_does_nothing(engine: None) -> None:
    SessionItem(session_items.session("k"), data="", expires_at=1).save()
    call_command("flush", interactive=False, verbosity=0)
    assert read("k") is not None


# --- transactions ---


class Ran(list[str]):
    """What ran, in order."""

    def note(self, name: str, error: Exception | None = None) -> Callable[[], None]:
        def hook() -> None:
            self.append(name)
            if error:
                raise error

        return hook


@pytest.fixture
def ran() -> Ran:
    return Ran()


def fail_in_a_block(hook: Callable[[], None], *, savepoint: bool = True) -> None:
    with transaction.atomic(savepoint=savepoint):
        transaction.on_commit(hook)
        raise ZeroDivisionError


def test_a_hook_outside_of_a_block_runs_at_once(ran: Ran) -> None:
    transaction.on_commit(ran.note("hook"))
    assert ran == ["hook"]


def test_hooks_run_in_order_when_the_block_has_ended(ran: Ran) -> None:
    with transaction.atomic():
        assert connection.in_atomic_block
        transaction.on_commit(ran.note("first"))
        transaction.on_commit(ran.note("second"))
        ran.append("block")
    assert ran == ["block", "first", "second"]
    assert not connection.in_atomic_block


def test_hooks_of_an_inner_block_wait_for_the_outermost(ran: Ran) -> None:
    with transaction.atomic():
        with transaction.atomic():
            transaction.on_commit(ran.note("inner"))
        with transaction.atomic(savepoint=False):
            transaction.on_commit(ran.note("inner without savepoint"))
        transaction.on_commit(ran.note("outer"))
        ran.append("block")
    assert ran == ["block", "inner", "inner without savepoint", "outer"]


def test_a_block_that_fails_runs_no_hooks_and_leaves_none_behind(ran: Ran) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_in_a_block(ran.note("hook"))
    with transaction.atomic():
        pass
    assert ran == []
    assert not connection.in_atomic_block


def test_an_inner_block_that_fails_takes_only_its_own_hooks_with_it(ran: Ran) -> None:
    with transaction.atomic():
        transaction.on_commit(ran.note("before"))
        with pytest.raises(ZeroDivisionError):
            fail_in_a_block(ran.note("inner"))
        transaction.on_commit(ran.note("after"))
    assert ran == ["before", "after"]


def test_an_inner_block_without_a_savepoint_takes_the_outer_one_with_it(ran: Ran) -> None:
    with transaction.atomic():
        transaction.on_commit(ran.note("outer"))
        with pytest.raises(ZeroDivisionError):
            fail_in_a_block(ran.note("inner"), savepoint=False)
    assert ran == []


def test_a_hook_that_fails_stops_those_behind_it_and_is_raised(ran: Ran) -> None:
    block = transaction.atomic()
    block.__enter__()
    transaction.on_commit(ran.note("first"))
    transaction.on_commit(ran.note("fails", ZeroDivisionError()))
    transaction.on_commit(ran.note("behind"))
    with pytest.raises(ZeroDivisionError):
        block.__exit__(None, None, None)
    assert ran == ["first", "fails"]
    with transaction.atomic():
        transaction.on_commit(ran.note("next block"))
    assert ran == ["first", "fails", "next block"]


def test_a_robust_hook_that_fails_is_logged_and_stops_nothing(ran: Ran, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "django"), transaction.atomic():
        transaction.on_commit(ran.note("fails", ZeroDivisionError("robust")), robust=True)
        transaction.on_commit(ran.note("behind"))
    assert ran == ["fails", "behind"]
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]


def test_a_hook_may_open_a_block_of_its_own(ran: Ran) -> None:
    def hook() -> None:
        with transaction.atomic():
            transaction.on_commit(ran.note("inner hook"))
            ran.append("inner block")

    with transaction.atomic():
        transaction.on_commit(hook)
        ran.append("block")
    assert ran == ["block", "inner block", "inner hook"]


def test_a_rollback_that_was_asked_for_runs_no_hooks(ran: Ran) -> None:
    with transaction.atomic():
        transaction.on_commit(ran.note("hook"))
        transaction.set_rollback(True)
    assert ran == []


def test_a_block_may_insist_on_being_the_outermost() -> None:
    with transaction.atomic(durable=True):
        pass
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"), transaction.atomic(durable=True):
        pass


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


def expire(session: SessionStore) -> None:
    """The time has come, and TTL has not."""
    item = read(session.session_key or "")
    assert item is not None
    item.expires_at = int(time.time()) - 1
    item.save()


def test_a_session_is_what_was_saved(stored: SessionStore) -> None:
    assert reopened(stored)["cart"] == {"é": [1, None, True]}
    assert stored.exists(stored.session_key or "")
    assert len(stored.session_key or "") == 32


def test_nothing_is_written_before_a_session_is_saved(engine: None) -> None:
    session = SessionStore()
    session["a"] = 1
    assert session.session_key is None
    session.save()
    assert read(session.session_key or "") is not None


def test_every_session_has_a_key_of_its_own(engine: None) -> None:
    made = [SessionStore() for _ in range(5)]
    for session in made:
        session.create()
    assert len({s.session_key for s in made}) == 5


def test_a_key_that_is_taken_is_not_taken_over(stored: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = iter([stored.session_key, "n" * 32])
    monkeypatch.setattr(SessionStore, "_get_new_session_key", lambda self: next(offered))
    other = SessionStore()
    other.create()
    assert other.session_key == "n" * 32
    assert reopened(stored)["cart"]


def test_a_session_that_does_not_exist_is_empty_and_loses_its_key(engine: None) -> None:
    session = SessionStore("x" * 32)
    assert session.get("cart") is None
    assert session.session_key is None
    assert session.is_empty()


@pytest.mark.parametrize("key", ["", "short", "../../x", "\0" * 32])
def test_a_key_that_none_of_ours_could_be_is_an_empty_session(engine: None, key: str) -> None:
    assert dict(SessionStore(key).items()) == {}


def test_an_expired_session_is_refused_though_ttl_has_not_removed_it(stored: SessionStore) -> None:
    expire(stored)
    session = reopened(stored)
    assert session.get("cart") is None
    assert session.session_key is None


def test_an_expired_session_is_refused_where_its_item_was_read_already(stored: SessionStore) -> None:
    expire(stored)
    item = read(stored.session_key or "")
    assert item is not None
    session = SessionStore.from_item(item, stored.session_key or "")
    assert session.get("cart") is None
    assert session.session_key is None


@pytest.mark.parametrize("write", [True, False])
def test_an_expired_session_does_not_come_back_under_its_old_key(stored: SessionStore, write: bool) -> None:
    expire(stored)
    old = read(stored.session_key or "")
    assert old is not None
    for session in (reopened(stored), SessionStore.from_item(old, stored.session_key or "")):
        if write:
            session["cart"] = "new"
        session.save()
        assert session.session_key not in (None, stored.session_key)
    still = read(stored.session_key or "")
    assert still is not None
    assert still.expires_at < time.time()


def test_a_session_made_from_its_item_costs_nothing(stored: SessionStore) -> None:
    item = read(stored.session_key or "")
    assert item is not None
    with meter.measure() as bill:
        assert SessionStore.from_item(item, stored.session_key or "")["cart"] == {"é": [1, None, True]}
    assert bill.calls == []


def test_data_that_was_altered_is_an_empty_session(stored: SessionStore) -> None:
    item = read(stored.session_key or "")
    assert item is not None
    item.data = item.data[:-1] + ("A" if item.data[-1] != "A" else "B")
    item.save()
    assert dict(reopened(stored).items()) == {}


def test_a_session_lasts_as_long_as_its_cookie(stored: SessionStore) -> None:
    item = read(stored.session_key or "")
    assert item is not None
    assert abs(item.expires_at - time.time() - django_settings.SESSION_COOKIE_AGE) < 60
    stored.set_expiry(300)
    stored.save()
    item = read(stored.session_key or "")
    assert item is not None
    assert abs(item.expires_at - time.time() - 300) < 60


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


def test_a_flushed_session_is_gone(stored: SessionStore) -> None:
    old = stored.session_key
    stored.flush()
    assert (stored.session_key, stored.is_empty()) == (None, True)
    assert read(old or "") is None


def test_a_deleted_session_is_gone(stored: SessionStore) -> None:
    SessionStore().delete(stored.session_key)
    assert reopened(stored).get("cart") is None
    stored.delete()  # once more does no harm
    SessionStore().delete()


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

    assert cost(lambda: SessionStore().create()) == 1
    assert cost(lambda: reopened(stored).get("cart")) == 1
    assert cost(stored.save) == 1
    assert cost(stored.flush) == 1


def test_there_is_nothing_to_clear(engine: None, bill: meter.Meter) -> None:
    SessionStore.clear_expired()
    assert bill.calls == []


# --- commands ---


def manage(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """`manage.py` in a process of its own, with this environment and nothing of the tests'."""
    root = Path(django_settings.BASE_DIR)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, str(root / "manage.py"), *arguments],
        env=kept | environ,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_checks_find_nothing() -> None:  # in production neither: tests/deployment/test_deploy_checks.py
    done = manage("check", "--fail-level", "WARNING", DEBUG="true", DYNAMODB_ENDPOINT_URL="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_there_is_nothing_to_migrate() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ended = run("makemigrations", "--check", "--dry-run")
    assert ended.status == 0, ended.out + ended.err
    assert "No changes detected" in ended.out
