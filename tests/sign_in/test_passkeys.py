"""Passkeys: signing in without a password, as the second step, and what no browser should send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fido2.utils import websafe_decode, websafe_encode
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.errors import Invalid
from tenants.audit_trail.recording import Actor
from tenants.sign_in import accounts, attempt_limits, factors, passkey_ceremony
from tenants.sign_in.accounts import User
from tenants.sign_in.passkey_ceremony import PasskeySite
from tests.desk.test_cost import _watching
from tests.support.factors import SECURITY, add_passkey, codes_in, confirmed, signed
from tests.support.soft_passkey import SoftPasskey
from tests.support.world import Browser, World, account_of

SIGN_IN, STEP = "/login/passkey/", "/login/second-step/"
SITE = PasskeySite("http://testserver")


def given_passkey(world: World, who: str, **how: Any) -> SoftPasskey:
    passkey = SoftPasskey(**how)
    assert add_passkey(confirmed(world, who), passkey).status_code == 200
    world.users[who] = account_of(f"{who}@example.com")
    return passkey


def test_a_passkey_signs_in_without_the_password(world: World) -> None:
    passkey = given_passkey(world, "bob")
    browser = Browser()
    answer = browser.post(SIGN_IN, signed(browser, passkey))
    assert answer["Location"] == "/acme/tickets/"
    assert "Bob Example" in browser.get("/account/").content.decode()


@pytest.mark.parametrize("whose", ["bob", "vera"])
def test_ones_own_passkey_and_no_other_is_the_second_step_and_confirms_who_is_signed_in(
    world: World, whose: str
) -> None:
    passkeys = {who: given_passkey(world, who) for who in ("bob", "vera")}
    is_own = whose == "bob"
    browser = Browser()
    browser.sign_in("bob@example.com")
    assert browser.post(STEP, signed(browser, passkeys[whose])).status_code == (302 if is_own else 422)
    assert browser.get("/account/").status_code == (200 if is_own else 302)
    browser = world.browser("bob")
    answer = browser.send(f"{SECURITY}confirm/", {**signed(browser, passkeys[whose])})
    assert answer.status_code == (302 if is_own else 422)
    assert browser.get(f"{SECURITY}authenticator/").status_code == (200 if is_own else 302)


def test_what_a_passkey_signed_signs_in_once(world: World) -> None:
    passkey = given_passkey(world, "bob")
    browser = Browser()
    fields = signed(browser, passkey)
    assert browser.post(SIGN_IN, fields).status_code == 302
    assert Browser().post(SIGN_IN, fields).status_code == 422


def test_the_counter_of_a_security_key_must_grow(world: World) -> None:
    key = given_passkey(world, "bob", counts=True)
    assert Browser().post(SIGN_IN, signed(Browser(), key)).status_code == 302
    key.uses -= 1  # as a copy of it would count
    answer = Browser().post(SIGN_IN, signed(Browser(), key))
    assert (answer.status_code, "counter" in answer.content.decode()) == (422, True)


def remove(world: World, passkey: SoftPasskey) -> None:
    (item,) = factors.factors_of(world.users["bob"].id).passkeys
    factors.remove_passkey(world.users["bob"].id, passkey_id=passkey_ceremony.passkey_id(item.credential), by=Actor())


SPOILED: dict[str, Callable[[World, SoftPasskey], Any]] = {
    "it was removed": remove,
    "its account is disabled": lambda world, _: accounts.set_active(world.users["bob"].id, False, by=Actor()),
    "it names somebody else": lambda world, key: setattr(key, "user_handle", world.users["alice"].id.encode()),
    "it was asked by another page": lambda _, key: setattr(key, "origin", "https://evil.example"),
    "that page has a name like ours": lambda _, key: setattr(key, "origin", "http://testserver.evil.example"),
    "it is of another site": lambda _, key: setattr(key, "site", "evil.example"),
    "another key signed": lambda _, key: setattr(key, "key", SoftPasskey().key),
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_passkey_signs_nobody_in_where(world: World, spoil: str) -> None:
    passkey = given_passkey(world, "bob")
    SPOILED[spoil](world, passkey)
    assert Browser().post(SIGN_IN, signed(Browser(), passkey)).status_code == 422


def test_a_passkey_that_did_not_verify_its_person_is_refused(world: World) -> None:
    passkey = given_passkey(world, "bob")
    asked = Browser().get(f"{SIGN_IN}challenge/").json()
    assert Browser().post(SIGN_IN, passkey.sign(asked, verified=False)).status_code == 422


def test_a_challenge_that_we_did_not_make_is_refused(world: World) -> None:
    passkey = given_passkey(world, "bob")
    fields = signed(Browser(), passkey)
    other = Browser().get(f"{SIGN_IN}challenge/").json()["challenge"]
    for token in (other, "", "x:y:z", fields["challenge"][:-1]):
        assert Browser().post(SIGN_IN, {**fields, "challenge": token}).status_code == 422


def test_a_challenge_ends_with_its_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    passkey = given_passkey(world, "bob")
    fields = signed(Browser(), passkey)
    monkeypatch.setattr(passkey_ceremony, "LIFETIME", -1)
    answer = Browser().post(SIGN_IN, fields)
    assert (answer.status_code, "open for too long" in answer.content.decode()) == (422, True)


def test_a_challenge_to_sign_in_makes_no_passkey(world: World) -> None:
    browser, passkey = confirmed(world, "bob"), SoftPasskey()
    asked = browser.get(f"{SECURITY}passkeys/options/").json()
    fields = passkey.create(asked) | {"challenge": browser.get(f"{SIGN_IN}challenge/").json()["challenge"]}
    answer: Any = browser.send(f"{SECURITY}passkeys/", {"name": "x", **fields})
    assert answer.status_code == 422


def test_a_passkey_that_was_asked_of_another_person_is_not_added(world: World) -> None:
    asked = confirmed(world, "vera").get(f"{SECURITY}passkeys/options/").json()
    answer: Any = confirmed(world, "bob").send(f"{SECURITY}passkeys/", {"name": "x", **SoftPasskey().create(asked)})
    assert answer.status_code == 422


def test_a_passkey_is_added_once(world: World) -> None:
    browser, passkey = confirmed(world, "bob"), SoftPasskey()
    assert codes_in(add_passkey(browser, passkey))
    assert add_passkey(browser, passkey).status_code == 422


def test_a_browser_is_told_which_passkeys_there_are(world: World) -> None:
    browser, passkey = confirmed(world, "bob"), SoftPasskey()
    add_passkey(browser, passkey)
    asked = browser.get(f"{SECURITY}passkeys/options/").json()["publicKey"]
    assert len(asked["excludeCredentials"]) == 1
    assert asked["authenticatorSelection"] == {
        "residentKey": "required",
        "requireResidentKey": True,
        "userVerification": "required",
    }


def test_asking_for_a_challenge_reads_and_writes_nothing(world: World) -> None:
    with _watching() as bills:
        assert Browser().get(f"{SIGN_IN}challenge/").status_code == 200
    assert [call for bill in bills for call in bill.calls] == []


def test_passkeys_of_one_network_are_limited(world: World) -> None:
    limits = attempt_limits.passkey(address="127.0.0.1")
    for _ in range(limits[0].most):
        attempt_limits.begin(limits)
    assert Browser().post(SIGN_IN, {"credential": "{}", "challenge": "x"}).status_code == 429


@pytest.mark.parametrize(
    ("origin", "has"),
    [
        ("https://desk.example.com", True),
        ("http://localhost:8000", True),
        ("http://127.0.0.1:8000", False),
        ("https://[::1]", False),
        ("https://192.0.2.1", False),
    ],
)
def test_a_site_without_a_name_offers_none_and_says_why(world: World, settings: Any, origin: str, has: bool) -> None:
    settings.PORTAL_BASE_URL = origin
    page = confirmed(world, "bob").get(SECURITY).content.decode()
    assert ("Browsers make passkeys for names" in page, "Add a passkey" in page) == (not has, has)


_NAMES = st.sampled_from(["id", "rawId", "type", "response"])
_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(_NAMES, some),
    max_leaves=8,
)


@given(junk=_JUNK)
def test_whatever_a_browser_sends_is_read_or_refused(junk: Any) -> None:
    token = passkey_ceremony.request(SITE)["challenge"]
    with pytest.raises(Invalid):
        passkey_ceremony.signed(SITE, json.dumps(junk), token, lambda user_id, passkey_id: None)


@settings(max_examples=25, deadline=None)
@given(place=st.sampled_from(["clientDataJSON", "authenticatorData", "signature"]), at=st.integers(0, 10_000))
def test_a_signature_of_which_one_byte_changed_is_refused(place: str, at: int) -> None:

    passkey, user = SoftPasskey(), User(id="a" * 32, email="a@example.com", name="A")
    made = passkey.create(passkey_ceremony.creation(SITE, user, []))
    credential = passkey_ceremony.created(SITE, user, made["credential"], made["challenge"])
    fields = passkey.sign(passkey_ceremony.request(SITE))
    answer = json.loads(fields["credential"])
    changed = bytearray(websafe_decode(answer["response"][place]))
    changed[at % len(changed)] ^= 1
    answer["response"][place] = websafe_encode(bytes(changed))
    with pytest.raises(Invalid):
        passkey_ceremony.signed(SITE, json.dumps(answer), fields["challenge"], lambda *_: credential)
