"""Which characters around a mail address belong to it: none is missed, and nobody else's is cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tenants.tenancy.personal_data import MailAddress
from tests.support.commands import everything, run
from tests.support.world import World
from tickets.desk import creating
from tickets.ticket.stored import TICKETS

BOB = "bob@example.com"
OF_BOB = (
    f"_{BOB}_ asked", f"__{BOB}__", f"*{BOB}*", f"`{BOB}`", f"{BOB}_", f"-{BOB}", f"+{BOB}", f"wait...{BOB}",
    f"{BOB}...", f"{BOB}-- sent", f"{BOB}-please call", f"{BOB}@ once", f"alice@example.com-{BOB}", f"d'{BOB}",
    f"alice@example.com.{BOB}", f"[him](mailto:{BOB})", f"https://x.example/?to={BOB}_1", f"({BOB}).",
    "BOB@Example.COM", "bob&#64;example.com", "bob&#x40;example&period;com", f"&lt;{BOB}&gt;", "to=bob%40example.com",
    f"?a=%20{BOB}", r"bob\@example\.com", "bob\uff20example.com", "\uff42ob@example.com",
)  # fmt: skip
OF_OTHERS = (
    "bob@example.com.au", "bob@example.community", "bob@example.com-pany.org", "bob@example.comé", "bob@example.com2",
    "notbob@example.com", "ébob@example.com", "x.bob@example.com", "x_bob@example.com", "x-bob@example.com",
    "x+bob@example.com", r"first\_bob@example.com", "bob+x@example.com", "bob.x@example.com", "bob@sub.example.com",
)  # fmt: skip
OTHERS = "\n\n".join(OF_OTHERS)

WORD = r"[^\W_]"
NAME = rf"{WORD}(?:(?:{WORD}|-)*{WORD})?"
DOMAIN = rf"{NAME}(?:\.{NAME})*\.[^\W\d_]{{2,}}(?!{WORD})"
SOMEBODYS = re.compile(rf"(?<!{WORD}){WORD}(?:[\w+-]|\.(?!\.))*@(?:{DOMAIN}(?!@{WORD})|{DOMAIN})")
# Without "\\", "%" and "&", which spell characters: what an address is then, SOMEBODYS does not say.
AROUND = st.text(st.sampled_from("abz019._-+@*()<>[]`'\"/=:,;!? \n\té"), max_size=6)
BESIDE = AROUND | st.builds("{}{}{}".format, AROUND, st.sampled_from(("alice@example.com", "x.org", BOB)), AROUND)


@given(before=BESIDE, after=BESIDE)
@example(before="alice@example.com-", after="-x.org")
def test_between_whatever_neighbours_the_address_goes_and_those_of_others_stay(before: str, after: str) -> None:
    text = f"{before}{BOB}{after}"
    left = SOMEBODYS.findall(MailAddress(BOB).replaced(text, "<>"))
    assert BOB not in left
    assert left == [one for one in SOMEBODYS.findall(text) if one != BOB]


@pytest.mark.parametrize("address", ["_bob@example.com", "bob@localhost", "o'bob@my_host.com", "bob@host-1"])
def test_an_address_of_an_unusual_form_is_found_too(address: str) -> None:
    text = f"{address}, *{address.upper()}* and __{address}__, not x{address} or {address}.au"
    replaced = MailAddress(address).replaced(text, "NOBODY")
    assert replaced == f"NOBODY, *NOBODY* and __NOBODY__, not x{address} or {address}.au"


def test_a_search_shows_and_an_erasure_replaces_each_of_them_and_none_of_anybody_else(world: World) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title="All", description="\n\n".join((*OF_BOB, OTHERS)), tags=[f"_{BOB}_"])
    creating.create(alice, title="Others", description=OTHERS)
    member_changes.remove(user_id=world.users["bob"].id, tenant_id=alice.tenant_id, by=SYSTEM)
    found = run("find_person", "acme", BOB)
    assert "the address in 2 texts, in 1 ticket" in found.err
    ended = run("erase_person", "acme", BOB, "--texts")
    assert ended.status == 0, ended.err
    stored = {f"{item['pk']['S'][-1]}{item['sk']['S']}": item for item in everything(TICKETS)}
    assert stored["2DETAIL"]["description"]["S"] == OTHERS
    whole = stored["1DETAIL"]["description"]["S"]
    assert (whole.count("Erased person"), whole.endswith(OTHERS)) == (len(OF_BOB), True)
    page = world.browser("alice", "acme").get("/tickets/1/").content.decode()
    assert ("bob@example.com.au" in SOMEBODYS.findall(page), BOB in SOMEBODYS.findall(page)) == (True, False)
    assert stored["1SUMMARY"]["tags"]["L"][0]["S"].startswith("_erased-person-")
