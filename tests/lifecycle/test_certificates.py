"""Certificates of deletion: each byte of one counts, each names the one before it, and anybody can verify them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import certificates
from tests.support.commands import run
from tests.support.world import World

FIRST, SECOND = "11" * 32, "22" * 32
FACTS = {
    "tenant": {"id": "a" * 32, "slug": "acme", "name": "Acmé"},
    "holdings": [{"name": "tickets", "counted": 12, "deleted": 12, "found_after": 0}],
    "number": 1,
    "previous": "",
    "issued_at": "2026-11-22T21:00:00.000000Z",
}


@pytest.fixture(autouse=True)
def first_key() -> Any:
    with override_settings(CERTIFICATE_KEY=FIRST, CERTIFICATE_FORMER_KEYS=[]):
        yield


def public(private: str) -> str:
    return certificates.private_key(private).public_key().public_bytes_raw().hex()


def signed(**facts: Any) -> bytes:
    return certificates.sign(FACTS | facts, certificates.signing_key())


def issue(number_of: str) -> bytes:
    facts = {name: value for name, value in FACTS.items() if name in ("tenant", "holdings")}
    return certificates.issue(facts, tenant_id=number_of * 32, title="Gone", by=SYSTEM, transaction=Transaction())


def test_what_was_signed_by_a_key_of_ours_verifies_and_says_what_it_said(settings: Any) -> None:
    said = certificates.verify(signed(), certificates.known_keys())
    assert {name: said[name] for name in FACTS} == FACTS
    foreign = certificates.sign(FACTS, certificates.private_key(SECOND))
    with pytest.raises(Invalid, match="is not among the known ones") as refused:
        certificates.verify(foreign, certificates.known_keys())
    for remedy in ("--keys", "CERTIFICATE_FORMER_KEYS", "DEBUG=1"):
        assert remedy in refused.value.message
    settings.CERTIFICATE_KEY = ""
    with pytest.raises(Conflict, match="CERTIFICATE_KEY"):
        certificates.signing_key()


def test_a_change_of_any_byte_is_noticed() -> None:
    content, keys = signed(), certificates.known_keys()
    for place, byte in enumerate(content):
        for other in {byte ^ 1, byte ^ 0x20, ord(" "), ord("0")} - {byte}:
            with pytest.raises(Invalid):
                certificates.verify(content[:place] + bytes([other]) + content[place + 1 :], keys)
        with pytest.raises(Invalid):
            certificates.verify(content[:place] + content[place + 1 :], keys)
        with pytest.raises(Invalid):
            certificates.verify(content[:place] + b" " + content[place:], keys)
    with pytest.raises(Invalid):
        certificates.verify(content + b"\n", keys)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"\xff", b'{"signature": 7}', b'{"signature": "ab"}', b"[" * 200_000]
)
def test_what_is_no_certificate_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(Invalid, match=r"certificate"):
        certificates.verify(content, certificates.known_keys())


def test_after_a_rotation_both_keys_verify_and_the_new_one_signs() -> None:
    before = signed()
    with override_settings(CERTIFICATE_KEY=SECOND, CERTIFICATE_FORMER_KEYS=[public(FIRST)]):
        after, keys = signed(), certificates.known_keys()
        assert certificates.verify(before, keys)["key"] != certificates.verify(after, keys)["key"]
        assert [*keys] == [certificates.verify(content, keys)["key"] for content in (after, before)]


def test_the_command_verifies_with_the_printed_keys_alone_and_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr("portal.dynamo.client.make_client", refuse)
    file, keys = tmp_path / "certificate.json", tmp_path / "keys.json"
    file.write_bytes(signed())
    keys.write_text(run("certificate_keys").out)
    with override_settings(CERTIFICATE_KEY=""):
        done = run("verify_certificate", file, "--keys", keys)
        assert (done.status, done.out.split(":")[0]) == (0, "Certificate 1 is good")
        assert run("verify_certificate", file).status == 1
    assert run("verify_certificate", file).out.count("with the keys of this installation's settings.") == 1
    file.write_bytes(signed().replace(b'"counted": 12', b'"counted": 13'))
    assert "its signature does not fit" in run("verify_certificate", file, "--keys", keys).err
    absent = run("verify_certificate", tmp_path / "none")
    assert (absent.status, "none cannot be read: No such file or directory." in absent.err) == (1, True)
    keys.write_text("{")
    assert "no file of keys" in run("verify_certificate", file, "--keys", keys).err


def test_a_new_key_that_is_printed_can_be_set() -> None:
    name, _, value = run("certificate_keys", "--new").out.strip().partition("=")
    with override_settings(**{name: value}):
        assert certificates.verify(signed(), certificates.known_keys())


def test_each_certificate_names_the_one_before_it_by_its_hash(world: World, tmp_path: Path) -> None:
    issued = [issue(digit) for digit in "abc"]
    said = [certificates.verify(content, certificates.known_keys()) for content in issued]
    assert [one["number"] for one in said] == [1, 2, 3]
    assert [one["previous"] for one in said] == ["", *map(certificates.digest, issued[:-1])]
    assert certificates.numbered_certificate("00000002").content.encode() == issued[1]

    files = [tmp_path / f"{number}.json" for number in (1, 2, 3)]
    for file, content in zip(files, issued, strict=True):
        file.write_bytes(content)
    assert run("verify_certificate", *files).status == 0
    files[1].write_bytes(signed(number=2, previous=said[1]["previous"]))  # ours, but not the one that was issued
    assert "does not name the certificate 2" in run("verify_certificate", *files).err
    files[0].write_bytes(issued[1])  # beside the one that was forged, with a key that was stolen
    assert "Two different certificates given here have the number 2" in run("verify_certificate", *files[:2]).err
    assert run("verify_certificate", files[0], files[0]).status == 0


def test_a_certificate_that_somebody_else_issues_at_the_same_moment_gets_the_next_number(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_last = certificates._last

    def somebody_is_faster() -> Any:
        monkeypatch.setattr(certificates, "_last", read_last)
        last = read_last()
        issue("b")
        return last

    monkeypatch.setattr(certificates, "_last", somebody_is_faster)
    said = certificates.verify(issue("a"), certificates.known_keys())
    assert said["number"] == 2
    assert said["previous"] == certificates.numbered_certificate("00000001").digest
