"""The items of files go with their tickets to another placement, and a crash leaves no file that a ticket lacks."""

from __future__ import annotations

import uuid

import pytest
import urllib3
from django.conf import settings

from portal.dynamo.store import Store
from portal.errors import Unavailable
from tests.attachments.conftest import PNG
from tests.moving.moves import BRIDGE, move
from tests.support.world import World
from tickets.attachments import attachments, downloads
from tickets.desk import commenting, timelines


@pytest.mark.skipif(settings.PLACEMENT != "pool", reason="the desk would lie there already")
def test_files_are_had_after_their_desk_has_moved(world: World) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file = attachments.store(bob, "a.png", PNG)
    commenting.comment(bob, 1, body="", files=[file])
    move(world, BRIDGE)
    bob = world.context("bob", "acme")
    assert attachments.usage(bob).count == 1
    assert urllib3.request("GET", downloads.address_of(bob, 1, file.id)).data == PNG
    later = attachments.store(bob, "b.png", PNG)
    commenting.comment(bob, 1, body="", files=[later])
    assert attachments.usage(bob).count == 2


def test_a_comment_that_was_not_written_shows_no_file_and_is_sent_again_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    bob = world.context("bob", "acme")
    file, request_id = attachments.store(bob, "a.png", PNG), uuid.uuid4().hex

    def dies(*args: object, **how: object) -> None:
        raise Unavailable("The process was killed.")

    with monkeypatch.context() as broken:
        broken.setattr(Store, "transact", dies)
        with pytest.raises(Unavailable):
            commenting.comment(bob, 1, body="", files=[file], request_id=request_id)
    assert [entry.files for entry in timelines.ticket(bob, 1).activity if entry.files] == []
    commenting.comment(bob, 1, body="", files=attachments.uploaded(bob, [file.id]), request_id=request_id)
    assert urllib3.request("GET", downloads.address_of(bob, 1, file.id)).data == PNG
