"""Guessing passwords is slow, and nobody can keep somebody else out by guessing."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test import Client

from portal.errors import LimitReached
from tenants.audit_trail import recording
from tenants.operators.facades import AuditRow
from tenants.sign_in import attempt_limits, passwords, session_lifecycle
from tests.support.world import PASSWORD, Browser, World

NEW = "another long password"


def sign_in(browser: Client, email: str = "bob@example.com", password: str = PASSWORD) -> int:
    return browser.post("/login/", {"email": email, "password": password}).status_code


def guess(address: str, times: int = 1, email: str = "bob@example.com") -> list[int]:
    """Wrong passwords from this address, each in a browser of its own."""
    return [sign_in(Client(REMOTE_ADDR=address), email, "wrong") for _ in range(times)]


@pytest.fixture
def hour(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    """A clock that stands, in the middle of a window; `set` moves it to so many windows after that."""
    middle = (time.time() // settings.SIGN_IN_WINDOW + 0.5) * settings.SIGN_IN_WINDOW

    class Clock:
        now = middle

        def set(self, windows: float) -> None:
            self.now = middle + windows * settings.SIGN_IN_WINDOW

    clock = Clock()
    monkeypatch.setattr(attempt_limits.time, "time", lambda: clock.now)
    return clock


# --- who is slowed down ---


@pytest.mark.parametrize("email", ["bob@example.com", "nobody@example.com"])
def test_the_ninth_guess_from_one_network_waits_whether_there_is_such_an_account_or_not(
    world: World, hour: Any, email: str
) -> None:
    assert guess("10.0.0.1", 8, email) == [422] * 8
    page = Client(REMOTE_ADDR="10.0.0.1").post("/login/", {"email": email, "password": PASSWORD})
    assert page.status_code == 429
    assert b"try again" in page.content


def test_a_stranger_who_guesses_does_not_keep_the_owner_out(world: World, hour: Any) -> None:
    guess("10.0.0.1", 12)
    assert sign_in(Client(REMOTE_ADDR="10.0.0.2")) == 302


def test_a_known_browser_signs_in_beside_somebody_who_guesses_in_its_own_network(world: World, hour: Any) -> None:
    known = Client(REMOTE_ADDR="10.0.0.1")
    assert sign_in(known) == 302
    known.post("/logout/")
    assert guess("10.0.0.1", 12)[-1] == 429
    assert sign_in(known) == 302


def test_a_known_browser_has_eight_guesses_too(world: World, hour: Any) -> None:
    known = Browser()
    known.sign_in("bob@example.com")
    known.post("/logout/")
    assert [sign_in(known, password="wrong") for _ in range(9)] == [422] * 8 + [429]


def test_a_browser_is_known_for_the_accounts_that_signed_in_with_it_alone(world: World, hour: Any) -> None:
    mallory = Client(REMOTE_ADDR="10.0.0.1")
    assert sign_in(mallory, "charlie@example.com") == 302
    mallory.post("/logout/")
    assert [sign_in(mallory, password="wrong") for _ in range(9)] == [422] * 8 + [429]


@pytest.mark.parametrize("cookie", ["", "x", "e30:1:forged", "é", "a" * 5000], ids=lambda c: repr(c[:6]))
def test_a_forged_cookie_makes_no_browser_known(world: World, hour: Any, cookie: str) -> None:
    guess("10.0.0.1", 8)
    browser = Client(REMOTE_ADDR="10.0.0.1")
    browser.cookies[attempt_limits.KNOWN_COOKIE] = cookie
    assert sign_in(browser) == 429


def test_a_browser_remembers_the_accounts_that_signed_in_last(world: World) -> None:
    cookie = ""
    for n in range(attempt_limits.ACCOUNTS + 1):
        cookie = attempt_limits.remembered_cookie(cookie, f"p{n}@example.com", epoch=0)
    assert attempt_limits.browser_name(cookie, "p0@example.com") == ""
    assert all(attempt_limits.browser_name(cookie, f"p{n}@example.com") for n in range(1, attempt_limits.ACCOUNTS + 1))


def test_many_accounts_from_one_network_are_one_attack(world: World, hour: Any, settings: Any) -> None:
    settings.SIGN_IN_ATTEMPTS_PER_NETWORK = 5
    for n in range(5):
        guess("10.0.0.1", email=f"x{n}@example.com")
    assert sign_in(Client(REMOTE_ADDR="10.0.0.1")) == 429
    assert sign_in(Client(REMOTE_ADDR="10.0.0.2")) == 302


def test_many_networks_against_one_account_are_one_attack(world: World, hour: Any, settings: Any) -> None:
    settings.SIGN_IN_ATTEMPTS_PER_ACCOUNT = 5
    known = Browser()
    known.sign_in("bob@example.com")
    assert [guess(f"10.0.0.{n}")[0] for n in range(7)] == [422] * 5 + [429] * 2
    assert sign_in(known) == 302, "a known browser is not among them"


def test_addresses_of_one_64_are_one_network(world: World, hour: Any) -> None:
    assert [guess(f"2001:db8:0:1::{n:x}")[0] for n in range(9)] == [422] * 8 + [429]
    assert guess("2001:db8:0:2::1") == [422]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_an_address_counts_for_its_network(address: str, network: str) -> None:
    assert attempt_limits.network_of(address) == network


def test_right_passwords_keep_nobody_out(world: World, hour: Any) -> None:
    for _ in range(12):
        assert sign_in(Client()) == 302


def test_a_proxy_is_believed_only_where_it_is_trusted(world: World, hour: Any, settings: Any) -> None:
    settings.SIGN_IN_ATTEMPTS_PER_NETWORK = 1
    wrong = {"email": "x@example.com", "password": "wrong"}
    for n in range(2):
        spoofed = Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=f"1.1.1.{n}").post("/login/", wrong)
    assert spoofed.status_code == 429
    settings.TRUSTED_PROXIES = 1
    behind = [
        Client(REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=f"{claimed}, 2.2.2.2").post("/login/", wrong)
        for claimed in ("9.9.9.8", "9.9.9.9")
    ]
    assert [answer.status_code for answer in behind] == [422, 429], "the proxy's word counts, the caller's does not"


# --- windows ---


def test_the_edge_between_two_windows_does_not_double_the_limit(world: World, hour: Any) -> None:
    hour.set(0.49)
    assert guess("10.0.0.1", 8) == [422] * 8
    hour.set(0.51)
    assert guess("10.0.0.1") == [429]


def test_the_wait_that_is_said_is_long_enough_and_no_longer_than_two_windows(world: World, hour: Any) -> None:
    limits = attempt_limits.sign_in("bob@example.com", address="10.0.0.1")
    for _ in range(20):
        attempt = attempt_limits.begin(limits)
    assert attempt.wait_minutes is not None
    assert attempt.wait_minutes <= 30
    hour.set(attempt.wait_minutes / 15)
    assert attempt_limits.begin(limits).wait_minutes is None


# --- the other places where a password or an address can be guessed ---


def test_the_old_password_cannot_be_guessed_in_a_session(world: World, hour: Any) -> None:
    bob = world.browser("bob")
    wrong = {"old_password": "wrong", "new_password1": NEW, "new_password2": NEW}
    right = wrong | {"old_password": PASSWORD}
    assert [bob.post("/account/password/", wrong).status_code for _ in range(8)] == [422] * 8
    assert bob.post("/account/password/", right).status_code == 429
    hour.set(2)
    assert bob.post("/account/password/", right).status_code == 302


def test_who_knows_the_old_password_may_try_new_ones_as_often_as_it_takes(world: World, hour: Any) -> None:
    bob = world.browser("bob")
    short = {"old_password": PASSWORD, "new_password1": "short", "new_password2": "short"}
    assert [bob.post("/account/password/", short).status_code for _ in range(10)] == [422] * 10


# --- what it costs ---


def test_the_platforms_trail_grows_by_a_bounded_number_of_refusals(
    world: World, hour: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lifecycle, "REFUSALS_LISTED", 3)
    for n in range(6):
        guess(f"10.0.0.{n}")
    everything = AuditRow.objects.filter(tenant_id=recording.PLATFORM)[:50]
    rows = [row for row in everything if row.action == "session.refused"]
    assert len(rows) == 3
    assert ["not listed" in str(row.after) for row in rows] == [True, False, False]


def test_of_many_hashes_at_once_a_few_are_made_fewer_wait_and_the_rest_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running, refused = threading.Semaphore(0), threading.Semaphore(0)
    go_on = threading.Event()

    def slow(self: object, password: str, salt: str) -> str:
        running.release()
        go_on.wait(120)
        return "hash"

    def hashed() -> str:
        try:
            return passwords.BoundedArgon2PasswordHasher().encode("x", "y")
        except LimitReached:
            refused.release()
            return "refused"

    monkeypatch.setattr(passwords.Argon2PasswordHasher, "encode", slow)
    monkeypatch.setattr(passwords, "WAIT_SECONDS", 120)
    with ThreadPoolExecutor(16) as pool:
        first = [pool.submit(hashed) for _ in range(passwords.AT_A_TIME)]
        for _ in first:
            assert running.acquire(timeout=120)
        others = [pool.submit(hashed) for _ in range(10)]
        for _ in range(10 - passwords.WAITING):
            assert refused.acquire(timeout=120), "nobody waits behind those that wait"
        assert not running.acquire(blocking=False), "no more are made at the same time"
        go_on.set()
        answers = [future.result() for future in first + others]
    assert Counter(answers) == {"hash": passwords.AT_A_TIME + passwords.WAITING, "refused": 10 - passwords.WAITING}


def test_a_hash_takes_19_mebibytes() -> None:
    encoded = passwords.BoundedArgon2PasswordHasher().encode("a password", "a salt of length")
    assert encoded.startswith("argon2$argon2id$v=19$m=19456,t=2,p=1$")
