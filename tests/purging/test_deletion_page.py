"""The operators' page of deletions: what is closed, an order with its reason, and the certificates as files."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings

from portal import clock
from portal.dynamo.store import Transaction
from portal.errors import Conflict
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import certificates, closing_mails, desk_closing
from tenants.lifecycle.stored import ARRIVING, ArrivingItem
from tenants.tenancy import tenant_directory
from tests.support.operators import Operator, tenant_url, text_of
from tests.support.stored import put_all
from tests.support.world import World
from tickets.purging import purge_requests
from tickets.purging.tenant_purge import TenantPurge

PAGE = "/admin/deletions/"


def close(world: World, days: int) -> Any:
    tenant_id = world.tenants["acme"].tenant_id
    desk_closing.close(tenant_id, by=SYSTEM, write=closing_mails.to_owners, days=days)
    return tenant_id


def test_a_purge_is_ordered_with_a_reason_after_what_there_is_was_shown_and_taken_back(
    world: World, root: Operator
) -> None:
    world.tickets("acme", 2)
    acme = close(world, days=0)
    assert "Acme" in root.says(PAGE)
    assert f'"{PAGE}?tenant=acme"' in root.get(tenant_url(world, "acme")).content.decode()
    assert "3 members, and 2 ticket numbers were given out" in root.says(f"{PAGE}?tenant=acme")
    assert root.post(f"{PAGE}?tenant=acme", {"reason": "", "slug": "acme"}).status_code == 422
    for typed in ("", "globex", "Acme"):
        refused = root.post(f"{PAGE}?tenant=acme", {"reason": "They left.", "slug": typed})
        assert refused.status_code == 422
        assert "slug" in refused.context["form"].errors
        assert "They left." in refused.content.decode(), "what was typed stays"
    assert purge_requests.PURGES.last(acme) is None
    root.post(f"{PAGE}?tenant=acme", {"reason": "They left.", "slug": "acme"})
    ordered = purge_requests.PURGES.last(acme)
    assert ordered is not None
    assert (ordered.state, ordered.reason, ordered.by_email) == ("ordered", "They left.", "root@example.com")
    assert "its purge is ordered" in root.says(PAGE)
    begins = clock.parse(ordered.asked_at) + timedelta(minutes=10)
    assert f"It can be taken back until it begins, which is from {begins:%H:%M} UTC on" in root.says(
        f"{PAGE}?tenant=acme"
    )
    assert f"The deletion of acme is ordered. It begins after {begins:%H:%M} UTC." in root.says("/admin/")
    told = mail.outbox[-1]
    assert (told.to, told.subject) == (["alice@example.com"], "Acme is about to be deleted")
    assert "The reason given: They left." in str(told.body)
    taken_back = root.post(f"{PAGE}?tenant=acme", {"withdraw": "1"}, follow=True)
    assert "The purge of Acme is not ordered any more." in text_of(taken_back)
    assert purge_requests.PURGES.last(acme) is None


def test_a_purge_shows_what_it_is_at_and_where_it_stopped_and_why(
    world: World, root: Operator, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CERTIFICATE_KEY = "11" * 32
    acme, seen = close(world, days=0), []

    def try_it(item: Any) -> Any:
        def nobody_follows(repository: Any) -> None:
            seen.append(root.says(PAGE))
            raise Conflict("Nobody follows the stream.")

        job = TenantPurge(item, by=SYSTEM, settle=0, caught_up=nobody_follows)
        with pytest.raises(Conflict, match="Nobody follows"):
            job.run()
        return job.item

    begun = purge_requests.begin(tenant_directory.get(acme), by=SYSTEM)
    assert "its deletion waits for somebody who goes on with it" in root.says(PAGE)
    left = try_it(begun)
    assert "is being deleted" in seen[0]
    stopped = "It stopped at: waiting for the stream worker Nobody follows the stream."
    assert stopped in root.says(PAGE)
    assert "Nobody is at work on it." in root.says(f"{PAGE}?tenant=acme")
    assert "The deletion of acme waits. Nobody follows the stream." in root.says("/admin/")
    try_it(left)
    assert "Nobody follows" not in seen[1], "somebody goes on with it"


def test_before_the_end_of_its_grace_no_purge_is_ordered(world: World, root: Operator) -> None:
    acme = close(world, days=3)
    assert "The grace of Acme ends on" in root.says(f"{PAGE}?tenant=acme")
    assert "There is no tenant with the slug “nobody”." in root.says(f"{PAGE}?tenant=nobody")
    root.post(f"{PAGE}?tenant=acme", {"reason": "They left.", "slug": "acme"})
    assert purge_requests.PURGES.last(acme) is None


def test_tenants_that_are_being_brought_in_are_listed_with_how_far_they_are(world: World, root: Operator) -> None:
    assert "being brought in" not in root.says(PAGE)
    note = ArrivingItem(ARRIVING, "umbrella", tenant_id="a" * 32, file="", entry="04-tickets.jsonl", line=1000)
    put_all([note])
    assert "umbrella line 1000 of 04-tickets.jsonl under way, or broken off" in root.says(PAGE)


@pytest.mark.parametrize(("who", "shown"), [("root@example.com", "root@example.com"), ("", "the command purge_tenant")])
def test_certificates_are_listed_with_who_asked_and_downloaded_as_they_were_signed(
    world: World, root: Operator, who: str, shown: str
) -> None:
    with override_settings(CERTIFICATE_KEY="11" * 32):
        facts = {
            "tenant": {"slug": "gone"},
            "asked_by": {"email": who, "origin": "purge_tenant"},
            "reason": "They left.",
            "holdings": [{"deleted": 3}, {"deleted": 4}],
        }
        issued = certificates.issue(facts, tenant_id="a" * 32, title="Gone", by=SYSTEM, transaction=Transaction())
        at = clock.parse(certificates.last_issued(1)[0].created_at)
        row = f"Download certificate 1 Gone (gone) {'a' * 32} {at.day} {at:%b %Y, %H:%M} {shown}. Reason: They left. 7"
        assert row in root.says(PAGE)
        file = root.get(f"{PAGE}?certificate=00000001")
        assert file.content == issued
        assert "certificate-00000001.json" in file["Content-Disposition"]
        assert certificates.verify(file.content, certificates.known_keys())["number"] == 1
    assert root.get(f"{PAGE}?certificate=7").status_code == 404
    assert world.browser("alice", "acme").get(PAGE).status_code == 403
