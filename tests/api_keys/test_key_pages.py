"""The pages of API keys, as an admin of a desk uses them and as nobody else may; and the command."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from portal import clock
from tenants.api_keys import key_authentication, key_changes, key_text
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tests.desk.test_cost import _watching
from tests.support import commands
from tests.support.api_keys import alter, make_key
from tests.support.world import World

PAGES = "/desk/settings/api-keys/"
FORM = {"name": "Billing", "scopes": ["tickets:read", "notes:read"], "request_id": "a" * 32}


def at(key: ApiKeyItem, rest: str = "") -> str:
    return f"{PAGES}{key.api_key_prefix}/{rest}"


def keys_of(world: World) -> list[ApiKeyItem]:
    return key_changes.listed(world.context("alice", "acme").repository)


def test_an_admin_makes_a_key_and_sees_it_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    alice = world.browser("alice", "acme")
    page = alice.send(f"{PAGES}new/", FORM)
    text = page.context["secret"]
    assert key_authentication.authenticate(text, address="").scopes == {Scope.TICKETS_READ, Scope.NOTES_READ}
    assert page.content.decode().count(text) == 1
    assert page["Cache-Control"] == "private, no-store"
    (key,) = keys_of(world)
    for address in (PAGES, at(key), at(key, "edit/"), at(key, "roll/"), at(key, "revoke/"), "/desk/audit/"):
        assert text not in alice.get(address).content.decode()
    assert text not in caplog.text


def test_the_trail_says_when_a_rolled_key_ends_in_the_form_of_its_reader(world: World) -> None:
    old, _ = make_key(world.context("alice", "acme"))
    alice = world.browser("alice", "acme")
    alice.send(at(old, "roll/"), {"version": "1", "grace": "24"})
    ends = next(key.expires_at for key in keys_of(world) if key.api_key_prefix == old.api_key_prefix)
    trail = alice.get("/desk/audit/", HTTP_ACCEPT_LANGUAGE="de").content.decode()
    said = trail.partition("der alte Schlüssel gilt bis")[2].partition("</ins>")[0]
    assert f"{clock.parse(ends):%Y, %H:%M:%S}" in said


def test_the_form_sent_again_by_a_reload_shows_no_key(world: World) -> None:
    alice = world.browser("alice", "acme")
    alice.send(f"{PAGES}new/", FORM)
    page = alice.send(f"{PAGES}new/", FORM)
    assert page.status_code == 422
    assert "secret" not in page.context
    assert "made already" in page.content.decode()


@pytest.mark.parametrize(
    ("values", "field", "said"),
    [
        ({"name": " "}, "name", "Enter a name"),
        ({"name": "x" * 61}, "name", "1-60 characters"),
        ({"name": "Bil\u202eling"}, "name", "that can be seen"),
        ({"scopes": []}, "scopes", "at least one"),
        ({"scopes": ["everything"]}, "scopes", "no scope “everything”"),
        ({"expires_on": "2020-01-31"}, "expires_on", "not over"),
        ({"expires_on": "9999-12-31"}, "expires_on", "ten years"),
        ({"expires_on": "soon"}, "expires_on", "Enter a day"),
        ({"addresses": "203.0.113.0/24\nhere"}, "addresses", "“here” is no network address"),
        ({"addresses": "203.0.113.9/24"}, "addresses", "Write 203.0.113.0/24"),
        ({"addresses": "\n".join(f"203.0.113.{number}" for number in range(21))}, "addresses", "up to 20"),
        *(
            ({"origins": origin}, "origins", "is no origin")
            for origin in ("*", "null", "https://app.example.com/x", "https://app.example.com/", "app.example.com")
        ),
        ({"origins": "https://*.example.com"}, "origins", "is no origin"),
        ({"origins": "https://user@app.example.com"}, "origins", "is no origin"),
        ({"origins": "http://app.example.com"}, "origins", "Use https"),
        ({"request_id": "../"}, "request_id", "damaged"),
    ],
)
def test_bad_input_is_said_at_its_field_and_nothing_typed_is_lost(
    values: dict[str, Any], field: str, said: str, world: World
) -> None:
    typed = FORM | {"addresses": "192.0.2.0/24", "origins": "https://a.example.com"} | values
    page = world.browser("alice", "acme").send(f"{PAGES}new/", typed)
    assert page.status_code == 422
    form = page.context["form"]
    assert said in " ".join(form.errors[field])
    assert [form[name].value() for name in ("name", "addresses", "origins")] == [
        typed[name] for name in ("name", "addresses", "origins")
    ]
    assert keys_of(world) == []


def test_all_that_is_wrong_is_said_at_once(world: World) -> None:
    wrong = {"name": " ", "expires_on": "2020-01-31", "addresses": "here\n192.0.2.1, there", "origins": "a b\n*"}
    form = world.browser("alice", "acme").send(f"{PAGES}new/", FORM | wrong).context["form"]
    said = {field: len(errors) for field, errors in form.errors.items()}
    assert said == {"name": 1, "expires_on": 1, "addresses": 2, "origins": 2}
    assert ["here" in form.errors["addresses"][0], "there" in form.errors["addresses"][1]] == [True, True]


def test_a_key_works_until_its_last_day_ends(world: World) -> None:
    day = (clock.now() + timedelta(days=3)).date()
    alice = world.browser("alice", "acme")
    alice.send(f"{PAGES}new/", FORM | {"expires_on": f"{day}"})
    (key,) = keys_of(world)
    assert key.expires_at == f"{day}T23:59:59.999999Z"
    form = alice.get(at(key, "edit/")).context["form"]
    assert form["expires_on"].value() == day


def test_an_edit_leaves_the_moment_of_the_end_as_it_is(world: World) -> None:
    end = clock.now() + timedelta(days=3)
    key, _ = make_key(world.context("alice", "acme"), expires_at=end)
    values = {"name": "Other", "scopes": ["tickets:read"], "expires_on": f"{end.date()}", "version": "1"}
    assert world.browser("alice", "acme").send(at(key, "edit/"), values).status_code == 302
    (changed,) = keys_of(world)
    assert (changed.name, changed.expires_at) == ("Other", clock.stamp(end))


def test_an_edit_of_an_older_version_is_refused_and_keeps_what_was_typed(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    alice = world.browser("alice", "acme")
    values = {"name": "Other", "scopes": ["tickets:read"], "version": "1"}
    alice.send(at(key, "edit/"), values)
    page = alice.send(at(key, "edit/"), values | {"name": "Third"})
    assert page.status_code == 409
    assert page.context["form"]["name"].value() == "Third"


def test_an_admin_rolls_a_key_and_sees_the_new_one_once(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"))
    alice = world.browser("alice", "acme")
    page = alice.send(at(key, "roll/"), {"version": "1", "grace": "24"})
    assert key_authentication.authenticate(page.context["secret"], address="").prefix != key.api_key_prefix
    assert key_authentication.authenticate(text, address="")
    again = alice.send(at(key, "roll/"), {"version": "1", "grace": "24"})
    assert again.status_code == 422
    assert "rolled already" in again.content.decode()
    assert [shown["badge"]["word"] for shown in alice.get(PAGES).context["keys"]] == ["Active", "Being replaced"]


@pytest.mark.parametrize("made_at", [time.min, time(12), time.max])
def test_the_successor_of_a_key_gets_as_many_days_as_the_key_had(world: World, made_at: time) -> None:
    today = clock.now().date()
    alice = world.browser("alice", "acme")
    alice.send(f"{PAGES}new/", FORM | {"expires_on": f"{today + timedelta(days=7)}"})
    (key,) = keys_of(world)
    alter(key, created_at=clock.stamp(datetime.combine(today, made_at, UTC)))
    form = alice.get(at(key, "roll/")).context["form"]
    assert form["expires_on"].value() == today + timedelta(days=7)


@pytest.mark.parametrize("values", [{"grace": "9999"}, {"grace": ""}, {"expires_on": "2020-01-31"}, {"version": "x"}])
def test_a_roll_that_cannot_be_is_refused(values: dict[str, str], world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    page = world.browser("alice", "acme").send(at(key, "roll/"), {"version": "1", "grace": "24"} | values)
    assert page.status_code == 422
    assert len(keys_of(world)) == 1


def test_an_admin_revokes_a_key_after_a_question(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    alice = world.browser("alice", "acme")
    assert b"cannot be brought back" in alice.get(at(key, "revoke/")).content
    assert keys_of(world)[0].revoked_at is None
    alice.send(at(key, "revoke/"))
    page = alice.get(PAGES)
    assert (page.context["keys"], page.context["ended"][0]["badge"]["word"]) == ([], "Revoked")
    assert alice.get(at(key)).status_code == 200


def test_revoking_a_rolled_key_says_whether_the_other_one_still_works(world: World) -> None:
    alice = world.browser("alice", "acme")
    old, _ = make_key(world.context("alice", "acme"))
    make_key(world.context("alice", "acme"), name="Other")
    alice.send(at(old, "roll/"), {"version": "1", "grace": "24"})
    prefixes = {key.api_key_prefix for key in keys_of(world) if key.key_id == old.key_id}
    new = next(key for key in keys_of(world) if key.api_key_prefix in prefixes - {old.api_key_prefix})
    ends = next(key.expires_at for key in keys_of(world) if key.api_key_prefix == old.api_key_prefix)

    def asked(key: ApiKeyItem) -> list[str]:
        page = alice.get(at(key, "revoke/")).content.decode()
        return [said for said in re.findall(r"<li>The (.*?)</li>", page) if "of the same name" in said]

    (said,) = asked(new)
    assert said.startswith("older key")
    assert key_text.shown(old.api_key_prefix) in said
    assert said.endswith(f">{clock.parse(ends):%-d %b %Y, %H:%M} UTC</time>.")
    (said,) = asked(old)
    assert said.startswith("newer key")
    assert said.endswith("still works until somebody revokes it.")
    alice.send(at(new, "revoke/"))
    assert asked(old)[0].endswith("does not work any more.")


def test_the_list_costs_one_read_and_a_key_one(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    alice = world.browser("alice", "acme")
    for address, operation in ((PAGES, "Query"), (at(key), "GetItem")):
        with _watching() as bills:
            alice.get(address)
        assert [call.operation for call in bills[0].calls] == ["BatchGetItem", operation]


def test_no_page_says_more_of_the_last_use_than_is_noted(world: World) -> None:
    key, _ = make_key(world.context("alice", "acme"))
    alice = world.browser("alice", "acme")
    for minutes, said in ((4, "in the last 5 minutes"), (6, "6 min ago")):
        alter(keys_of(world)[0], last_used_at=clock.stamp(clock.now() - timedelta(minutes=minutes)))
        pages = {address: alice.get(address).content.decode() for address in (PAGES, at(key), at(key, "revoke/"))}
        assert [address for address, page in pages.items() if said not in page] == []
    assert "once in 5 minutes" in pages[at(key)]


def test_states_are_told_apart(world: World) -> None:
    alice = world.context("alice", "acme")
    for name, values in {
        "Active": {},
        "Ends soon": {"expires_at": clock.stamp(clock.now() + timedelta(days=2))},
        "Expired": {"expires_at": clock.stamp()},
        "Replaced": {"expires_at": clock.stamp(), "replaced_by": "Ab0Cd1Ef"},
        "Being replaced": {"expires_at": clock.stamp(clock.now() + timedelta(days=2)), "replaced_by": "Ab0Cd1Ef"},
        "Revoked": {"revoked_at": clock.stamp()},
    }.items():
        alter(make_key(alice, name=name)[0], **values)
    page = world.browser("alice", "acme").get(PAGES)
    shown = [*page.context["keys"], *page.context["ended"]]
    assert len(shown) == 6
    assert [key["badge"]["word"] for key in shown] == [key["name"] for key in shown]


# --- the command ---


def test_the_command_prints_the_key_and_nothing_else(world: World) -> None:
    ended = commands.run(
        "create_api_key", "--tenant", "acme", "--name", "Seeding", "--scopes", "tickets:read, tickets:write",
        "--days", "7", "--from", "203.0.113.0/24", "--origins", "https://app.example.com",
    )  # fmt: skip
    assert (ended.status, ended.err) == (0, "")
    assert re.fullmatch(r"sk_live_\w+\n", ended.out)
    caller = key_authentication.authenticate(ended.out.strip(), address="203.0.113.7")
    assert caller.tenant.slug == "acme"
    assert (caller.scopes, caller.origins) == ({Scope.TICKETS_READ, Scope.TICKETS_WRITE}, ("https://app.example.com",))
    (key,) = keys_of(world)
    assert timedelta(days=6) < clock.parse(str(key.expires_at)) - clock.now() < timedelta(days=7)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"--scopes": "tickets:read,all"}, "There is no scope “all”"),
        ({"--scopes": ""}, "at least one scope"),
        ({"--tenant": "nowhere"}, "no tenant with the slug"),
        ({"--name": ""}, "characters for the name"),
        ({"--from": "here"}, "no network address"),
    ],
)
def test_the_command_says_what_it_does_not_take(world: World, values: dict[str, str], said: str) -> None:
    options = {"--tenant": "acme", "--name": "Seeding", "--scopes": "tickets:read"} | values
    ended = commands.run("create_api_key", *(word for option in options.items() for word in option))
    assert ended.status == 1
    assert said in ended.err
    assert ended.out == ""
    assert keys_of(world) == []


def test_a_key_names_the_installation_that_it_is_for() -> None:
    assert key_text.new("a" * 32, "Ab0Cd1Ef").startswith("sk_live_")
