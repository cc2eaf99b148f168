"""The page of a desk's mail: what admins change there, what is refused, who is kept out, and a domain's records."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from portal.mailing import ses_backend
from portal.mailing.ses_backend import SendingIdentity
from tests.support import mailing
from tests.support.mail_receiver import MailReceiver
from tests.support.name_server import NameServer, name_server
from tests.support.operators import calls
from tests.support.world import Browser, World
from tickets.desk import commenting
from tickets.replies import mail_settings, own_domain
from tickets.replies.mail_settings import MailSettings

PAGE = "/desk/settings/mail/"
FORM = {"history": "5", "link_days": "90", "version": "0"}
DOMAIN = "support.example.net"


@pytest.fixture
def alice(world: World) -> Browser:
    return world.browser("alice", "acme")


@pytest.fixture
def dns() -> Iterator[NameServer]:
    with name_server() as server:
        yield server


def stored(world: World, where: str = "acme") -> MailSettings:
    return mail_settings.read(world.context("alice", where))


def shown(answer: Any) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def save(browser: Browser, **values: str) -> Any:
    return browser.send(PAGE, FORM | values)


def choose(browser: Browser, sender: str, version: int = 0) -> Any:
    return browser.send(f"{PAGE}sender/", {"domain_sender": sender, "version": str(version)}, follow=True)


def check(browser: Browser) -> Any:
    return browser.send(f"{PAGE}check/", follow=True)


def test_an_admin_changes_how_the_desk_sends_mail(world: World, alice: Browser) -> None:
    assert save(alice, sender_name="Acme Help", signature="Yours\n  Acme", blocked="@Spam.example\nmallory@x.example",
                addresses="Help@Acme.example", acknowledgement="Thanks!", history="1").status_code == 302  # fmt: skip
    now = stored(world)
    assert (now.sender_name, now.signature, now.history, now.version) == ("Acme Help", "Yours\n  Acme", 1, 1)
    assert (now.blocked, now.addresses) == (("@spam.example", "mallory@x.example"), ("help@acme.example",))
    assert not now.acknowledges
    page = alice.get(PAGE).content.decode()
    assert 'value="Acme Help"' in page
    assert stored(world, "globex") == MailSettings(), "another desk has settings of its own"


def test_a_change_is_in_the_audit_trail_with_what_it_was_before(alice: Browser) -> None:
    save(alice, sender_name="Acme Help", acknowledges="on")
    trail = shown(alice.get("/desk/audit/"))
    assert "changed the mail settings of" in trail
    assert "Acme Help" in trail


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"sender_name": "x" * 81}, "Use at most 80 characters."),
        ({"sender_name": "Acme <x@y>"}, "Leave out <, >, @ and quotation marks"),
        ({"signature": "x" * 2001}, "This text has 2,001 characters; 2,000 are allowed. Shorten it by 1."),
        ({"signature": "a\x07b"}, "no letter can show"),
        ({"history": "7"}, "Select a valid choice"),
        ({"addresses": "nobody"}, "“nobody” is no mail address."),
        ({"blocked": "@"}, "is no mail address."),
        ({"blocked": "\n".join(f"a{n}@x.example" for n in range(101))}, "Enter at most 100 addresses."),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_nothing_is_lost(
    world: World, alice: Browser, values: dict[str, str], sentence: str
) -> None:
    answer = save(alice, **{"acknowledgement": "Keep me.", **values})
    assert answer.status_code == 422
    assert sentence in shown(answer)
    assert "Keep me.</textarea>" in answer.content.decode()
    assert stored(world) == MailSettings()


def test_settings_that_somebody_changed_meanwhile_are_said_at_their_fields_and_saving_again_replaces_them(
    world: World, alice: Browser
) -> None:
    save(alice, sender_name="Acme Help", acknowledges="on", history="1")
    refused = save(alice, signature="Yours\r\nBob")
    said = re.findall(r">([^<:]+): Stored now: ([^<]*)</a>", refused.content.decode())
    assert said == [
        ("Name of the sender", "Acme Help"), ("Signature", "(empty)"), ("Earlier messages that a letter quotes",
         "The last message"), ("Answer each new request with an acknowledgement", "Yes"),
    ]  # fmt: skip
    version = refused.context["form"]["version"].value()
    assert save(alice, signature="Yours\r\nBob", version=version).status_code == 302
    assert (stored(world).sender_name, stored(world).signature) == ("", "Yours\nBob")


def test_the_page_costs_one_read_beside_who_asks(alice: Browser) -> None:
    alice.get(PAGE)
    with calls() as made:
        alice.get(PAGE)
    assert [call.operation for call in made] == ["BatchGetItem", "GetItem"]


@pytest.mark.parametrize(
    ("address", "is_blocked"),
    [
        ("mallory@x.example", True),
        ("MALLORY@X.example", True),
        ("anybody@spam.example", True),
        ("anybody@mail.spam.example", True),
        ("anybody@notspam.example", False),
        ("alice@x.example", False),
    ],
)
def test_a_sender_is_blocked_by_address_or_by_domain(address: str, is_blocked: bool) -> None:
    assert MailSettings(blocked=("mallory@x.example", "@spam.example")).is_blocked(address) is is_blocked


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("acme@desk.localhost", True),
        ("acme+sales@desk.localhost", True),
        ("reply+abc@desk.localhost", True),
        ("help@acme.example", True),
        ("globex@desk.localhost", False),
        ("acme@elsewhere.example", False),
    ],
)
def test_a_desk_knows_its_own_addresses(address: str, is_own: bool) -> None:
    assert MailSettings(addresses=("help@acme.example",)).is_own("acme", address) is is_own


# --- its own domain ---


def prove(world: World, dns: NameServer, *, where: str = "acme") -> None:
    proof = own_domain.proof_of(world.tenants[where].tenant_id, DOMAIN)
    dns.records[f"_pooldesk.{DOMAIN}", "TXT"] = [proof]
    dns.records[DOMAIN, "TXT"] = ["v=spf1 -all"]


def test_letters_leave_from_the_desks_own_domain_once_its_dns_names_the_desk(
    world: World, alice: Browser, number: int, dns: NameServer, inbox: MailReceiver
) -> None:
    page = shown(choose(alice, f"Help@{DOMAIN}"))
    assert own_domain.proof_of(world.tenants["acme"].tenant_id, DOMAIN) in page
    assert "There is no such record yet." in shown(check(alice))
    send(world, number)
    prove(world, dns)
    assert f"Letters leave from help@{DOMAIN} now." in shown(check(alice))
    send(world, number)
    assert [letter["From"].addresses[0].addr_spec for letter in inbox.letters] == [
        "acme@desk.localhost",
        f"help@{DOMAIN}",
    ]
    assert inbox.letters[1]["Reply-To"].addresses[0].domain == "desk.localhost", "answers still come to us"


def send(world: World, number: int) -> None:
    commenting.comment(world.context("bob", "acme"), number, body="Hello.")
    mailing.carry()


def test_a_domain_that_names_another_desk_is_of_no_use_to_this_one(
    world: World, alice: Browser, dns: NameServer
) -> None:
    choose(alice, f"help@{DOMAIN}")
    prove(world, dns, where="globex")
    assert "The record is there, but with another value." in shown(check(alice))
    assert not stored(world).domain_proved_at


def test_a_record_that_went_away_ends_sending_from_the_domain(world: World, alice: Browser, dns: NameServer) -> None:
    choose(alice, f"help@{DOMAIN}")
    prove(world, dns)
    check(alice)
    assert stored(world).domain_proved_at
    dns.records.clear()
    check(alice)
    assert not stored(world).domain_proved_at


def test_another_domain_has_to_be_proved_anew(world: World, alice: Browser, dns: NameServer) -> None:
    choose(alice, f"help@{DOMAIN}")
    prove(world, dns)
    check(alice)
    choose(alice, f"sales@{DOMAIN}", version=2)
    assert stored(world).domain_proved_at, "the same domain"
    choose(alice, "help@other.example", version=3)
    assert not stored(world).domain_proved_at
    choose(alice, "", version=4)
    assert stored(world).domain == ""


@pytest.mark.parametrize(
    ("sender", "sentence"),
    [
        ("nobody", "“nobody” is no mail address."),
        ("help@localhost", "known on the internet"),
        ("help@[127.0.0.1]", "known on the internet"),
        ("globex@desk.localhost", "This domain is that of the installation."),
        ("x@sub.desk.localhost", "This domain is that of the installation."),
    ],
)
def test_an_address_that_nobody_can_send_from_is_refused(
    world: World, alice: Browser, sender: str, sentence: str
) -> None:
    answer = choose(alice, sender)
    assert sentence in shown(answer)
    assert f'value="{sender}"' in answer.content.decode()
    assert stored(world) == MailSettings()


def test_the_page_says_what_it_does_not_check(alice: Browser) -> None:
    page = shown(choose(alice, f"help@{DOMAIN}"))
    assert "Not checked" in page
    assert "signs letters for your domain (DKIM)" in page


def test_spf_and_dmarc_are_looked_at_and_decide_nothing(world: World, alice: Browser, dns: NameServer) -> None:
    choose(alice, f"help@{DOMAIN}")
    prove(world, dns)
    dns.records[f"_dmarc.{DOMAIN}", "TXT"] = ["v=DMARC1; p=none"]
    with override_settings(MAIL_SPF="include:_spf.mail.example"):
        page = shown(check(alice))
    assert "does not name the mail server of this installation" in page
    assert stored(world).domain_proved_at
    dns.records[DOMAIN, "TXT"] = ["v=spf1 nonsense"]
    page = shown(check(alice))
    assert stored(world).domain_proved_at
    assert stored(world).findings["spf"].startswith("missing")


def test_amazon_ses_names_its_records_and_has_the_last_word(
    world: World, alice: Browser, dns: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = SendingIdentity(("one", "two"), is_verified=False)
    monkeypatch.setattr(ses_backend, "identity", lambda domain: identity)
    monkeypatch.setattr(ses_backend, "is_used", lambda: True)
    choose(alice, f"help@{DOMAIN}")
    prove(world, dns)
    dns.records[f"one._domainkey.{DOMAIN}", "CNAME"] = ["one.dkim.amazonses.com."]
    page = shown(check(alice))
    assert f"two._domainkey.{DOMAIN}" in page
    assert "Amazon SES has not found its DKIM records yet." in page
    found = stored(world)
    assert (found.findings["dkim one"], found.findings["dkim two"][:7]) == ("ok Found.", "missing")
    assert not found.domain_proved_at
    identity = SendingIdentity(("one", "two"), is_verified=True)
    check(alice)
    assert stored(world).domain_proved_at


def test_a_check_without_a_domain_says_what_to_do_first(alice: Browser) -> None:
    assert "Choose an address to send from first." in shown(check(alice))


def test_a_domain_beyond_ascii_is_blocked_as_letters_spell_it() -> None:
    settings = MailSettings(blocked=("@xn--bcher-kva.example",), addresses=("help@xn--mller-kva.example",))
    assert settings.is_blocked("eve@b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example")
    assert settings.is_own("acme", "help@m\N{LATIN SMALL LETTER U WITH DIAERESIS}ller.example")
