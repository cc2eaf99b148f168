"""Files with a public form: sent to the bucket by a signed form that belongs to the page that is open."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from portal.objects.object_store import UploadForm
from tests.attachments.conftest import PNG, send
from tests.public_form.conftest import Guest, open_form
from tests.support.world import World
from tickets.attachments import attachments, views
from tickets.desk import timelines


def begun(guest: Guest, challenge: str, size: int = len(PNG), name: str = "photo.png") -> Any:
    answer = guest.client.post(f"{guest.path}files/?challenge={challenge}", {"name": name, "size": str(size)})
    return answer.status_code, json.loads(answer.content)


def test_a_file_that_was_sent_with_a_form_is_on_its_ticket(open_desk: World) -> None:
    guest = Guest()
    fields = guest.form()
    status, told = begun(guest, fields["challenge"])
    assert status == 200
    assert send(UploadForm(told["url"], told["fields"]), PNG)[0] < 300
    refused = guest.post({**fields, "email": "nobody", "files": told["id"]})
    assert f'value="{told["id"]}"' in refused.content.decode(), "a refusal keeps the files"
    assert guest.post({**fields, "files": told["id"]}).status_code == 200
    (file,) = timelines.ticket(open_desk.context("bob", "acme"), 1).files or []
    assert file.name == "photo.png"


def test_a_file_of_another_page_is_not_taken(open_desk: World) -> None:
    guest, other = Guest(), Guest("203.0.113.9")
    theirs = other.form()
    _, told = begun(other, theirs["challenge"])
    send(UploadForm(told["url"], told["fields"]), PNG)
    answer = guest.post({**guest.form(), "files": told["id"]})
    assert answer.status_code == 422
    assert "It &lt;b&gt;stands&lt;/b&gt; still." in answer.content.decode()


@pytest.mark.parametrize("challenge", ["", "forged", "0" * 300])
def test_without_a_page_nobody_begins_an_upload(open_desk: World, challenge: str) -> None:
    assert begun(Guest(), challenge)[0] == 422


def test_a_desk_whose_form_takes_no_files_begins_none(world: World) -> None:
    open_form(world, takes_files=False)
    guest = Guest()
    assert begun(guest, guest.challenge()[0])[0] == 422


def test_a_network_begins_no_more_files_than_its_share(
    open_desk: World, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.GUEST_RATE = 0
    monkeypatch.setattr(views, "GUEST_FILES_OF_NETWORK", 3)
    monkeypatch.setattr(views, "GUEST_FILES_OF_DESK", 5)
    guest = Guest()
    answers = [begun(guest, guest.challenge()[0]) for _ in range(9)]  # each page is a new one
    assert [status for status, _ in answers] == [200] * 3 + [429] * 6
    assert "Many files came from your network" in answers[-1][1]["problem"]
    assert begun(Guest("203.0.113.9"), guest.challenge()[0])[0] == 200, "another network is not kept out"


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(open_desk: World) -> None:
    guest = Guest()
    status, told = begun(guest, guest.challenge()[0], size=attachments.GUEST_BYTES + 1)
    assert (status, "problem" in told) == (422, True)


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("leer.txt", 0, "leer.txt ist leer."),
        ("film.mp4", attachments.GUEST_BYTES + 1, "film.mp4 ist größer als 10 MB."),
    ],
)
def test_a_refused_file_is_told_of_in_the_language_of_the_page(
    open_desk: World, name: str, size: int, sentence: str
) -> None:
    guest = Guest()
    fields = guest.form()
    answer = guest.client.post(
        f"{guest.path}files/?challenge={fields['challenge']}&lang=de", {"name": name, "size": str(size)}
    )
    assert answer.json()["problem"] == sentence
    upload = re.search(r'data-files="([^"]+)"', guest.client.get(f"{guest.path}?lang=de").content.decode())
    assert upload is not None
    assert upload[1].endswith("lang=de")
    left = guest.client.post(f"{guest.path}?lang=de", {**fields, "files": "0" * 32}).content.decode()
    assert "Eine dieser Dateien ist nicht Ihre" in left
