"""A desk that was used in each of the ways in which the product stores something of a tenant."""

from __future__ import annotations

import json
import time
import uuid
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from django.test import override_settings

from delivery.outbox import publisher
from delivery.outbox.outbox_rows import Work
from delivery.queues import dead_deliveries, holds
from delivery.timers import due
from delivery.webhooks import endpoints
from delivery.webhooks import stored as webhook_keys
from delivery.webhooks.stored import DeliveryItem
from portal import clock
from portal.dynamo import fencing, provisioning
from portal.dynamo.placement import Placement
from portal.dynamo.store import Transaction
from portal.dynamo.tenant_reader import TenantReader
from portal.load import stored as limit_keys
from portal.load import stored as noise_holdings
from portal.load import stored as noise_keys
from portal.load.measurement import NoiseTally
from portal.load.stored import (
    NO_TENANT,
    CostItem,
    DisturbedDayItem,
    IncidentDayItem,
    NoiseItem,
    PlatformCostItem,
    RouteCostItem,
    SharePostItem,
    UsageItem,
    routes_of,
)  # fmt: skip
from portal.schema import holdings, keys
from portal.schema.holdings import StoredItem
from portal.streams import positions
from portal.streams.stream_source import StreamSource
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import desk_settings, tenant_lifecycle
from tenants.lifecycle.stored import ARRIVING, ArrivingItem
from tenants.membership import accepting, auditors, mail_choices, member_changes
from tenants.membership.mail_choices import MailKind
from tenants.membership.stored import UnreachedItem
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.stored import PLACED, DirectoryItem, placed_key
from tests.attachments.pictures import encoded
from tests.support import archives, embedded, mailing
from tests.support.api_client import api_client
from tests.support.commands import run
from tests.support.endpoints import endpoint, rows
from tests.support.folding import Follower, put_aside
from tests.support.searching import index_all
from tests.support.stored import put_all, unguarded
from tests.support.targets import HOUR, set_targets
from tests.support.world import World
from tickets.articles import article_changes, sections
from tickets.articles.articles import Text
from tickets.attachments import attachments
from tickets.bulk_jobs import bulk_job, bulk_requests
from tickets.counting import stream_barrier
from tickets.counting.stored import MarkerItem
from tickets.data import stored as import_keys
from tickets.desk import changing, commenting, creating
from tickets.desk.letter_texts import FromLetter
from tickets.desk.many import TicketEdit
from tickets.desk_export import export_job, export_requests
from tickets.desk_setup import setup
from tickets.desk_setup.setup import Assigning
from tickets.groups import agent_changes, assigning, group_changes
from tickets.isolation_runs import run_job
from tickets.isolation_runs import run_requests as isolation_requests
from tickets.jobs.stored import past
from tickets.letters import ledger
from tickets.letters.envelope import Envelope
from tickets.letters.ledger import LetterRecord
from tickets.live import presence
from tickets.moving import stored as moving_keys
from tickets.moving.stored import MoveItem
from tickets.notices import following, inbox
from tickets.outside import looks
from tickets.public_form import challenges, form_settings, receiving
from tickets.public_form.receiving import SentForm
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given
from tickets.ready_answers.answer_uses import Uses
from tickets.replies import mail_settings, message_ids
from tickets.requesters import requesters
from tickets.rules import rehearsal_job, rehearsal_requests, rule_changes
from tickets.rules import stored as rule_keys
from tickets.rules.stored import RunCountItem, RunItem
from tickets.saved_views import saved_views
from tickets.search import index_rebuild
from tickets.search.index import indexing
from tickets.seeding.stored import SOURCE, SeedItem
from tickets.sharding import reshard_requests
from tickets.sharding.stored import HEAT, PAST_RESHARDINGS, HeatItem, ReshardItem
from tickets.sla.policy import TargetRule
from tickets.ticket.causes import Cause
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import TICKETS

BEGAN: Final = time.time()
SLUG = "umbrella"  # of the desk that was Acme


def prepared(folder: Path) -> World:
    """The world with its used desks: made once for all tests."""

    def make() -> World:
        world = World.create()
        use(world, folder)
        return world

    return embedded.prepared("used-desk", make)


def stored_of(tenant_id: str) -> list[StoredItem]:
    """All that the holdings find of a tenant."""
    return [stored for one in holdings.holdings() for stored in one.find(TenantReader(tenant_id))]


def remove(tenant_id: str) -> None:
    """Delete all of it, past every role."""
    connection = unguarded()
    for stored in stored_of(tenant_id):
        connection.dispatch("DeleteItem", {"TableName": stored.table.full_name, "Key": stored.key})


def use(world: World, folder: Path) -> None:
    """Use Acme, and Globex beside it, which shares some rows with it. In the end Acme has another name."""
    for where in ("acme", "globex"):
        _people(world, where)
        _tickets(world, where)
        _systems(world, where)
        _delivery(world, where)
    _imports(folder)
    _follow(world)
    _operators(world)
    _exports(world)
    _shared_rows(world)
    alice = world.context("alice", "acme")
    desk_settings.rename(alice, name="Umbrella", slug=SLUG, by=Actor(alice.user_id))
    tenant_lifecycle.suspend(world.tenants["globex"].tenant_id, by=SYSTEM)


def _owner(where: str) -> str:
    return "alice" if where == "acme" else "charlie"


def _people(world: World, where: str) -> None:
    browser = world.browser(_owner(where), where)
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        browser.send("/desk/invitations/", {"addresses": f"nora@{where}.example.org", "role": "agent"})
    tenant_id = world.tenants[where].tenant_id
    put_all(
        [UnreachedItem(tenant_id, "some", sent_at=clock.stamp(), at=clock.stamp(), why="Gone.", expires_at=_later())]
    )
    auditor, owner = world.add_user(f"Auditor-{where}"), world.context(_owner(where), where)
    until = clock.now() + timedelta(days=30)
    sent = auditors.invite(
        owner, name=auditor.name, address=auditor.email, purpose="Audit", until=until, by=Actor(owner.user_id)
    )
    accepting.accept(accepting.by_secret(sent.secret), user=auditor, by=Actor(auditor.id, auditor.email))
    assert world.browser("alice").sign_in("alice@example.com").status_code == 302  # type: ignore[attr-defined]
    world.add_user(f"Former {where}")
    gone = world.users[f"former {where}"]
    world.join(f"former {where}", where, Role.AGENT)
    visitor = world.browser(f"former {where}")
    visitor.cookies.clear()
    visitor.sign_in(gone.email)
    member_changes.remove(user_id=gone.id, tenant_id=tenant_id, by=SYSTEM)


def _tickets(world: World, where: str) -> None:
    person = world.context(_owner(where), where)
    number = creating.create(person, title="The printer is on fire", description="It smells.", tags=["vip"])
    picture = attachments.store(person, "fire.png", b"\x89PNG\r\n\x1a\n")
    commenting.comment(person, number, body="Have you poured water on it?", files=[picture])
    attachments.store(person, "unsent.txt", b"on its way to a ticket")
    commenting.comment(person, number, body="Let us not tell them.", internal=True)
    following.follow(person, number, person.user_id)
    mail_choices.refuse(person.repository, person.user_id, MailKind.MENTIONED)
    presence.announce(person, number, shown=clock.stamp())
    inbox.tell(person, person.user_id, MailKind.ASSIGNED, number, at=clock.stamp(), event="assigned")
    changing.edit(
        person, number, version=1, title="The printer", description="It smells of smoke.",
        priority=Priority.HIGH, tags=["vip"],
    )  # fmt: skip
    changing.change_status(person, number, to=Status.RESOLVED, version=2)
    ada = requesters.ensure(person, f"ada@{where}.example.org", name="Ada Lovelace")
    number = creating.create(person, title="The engine", requester=ada)
    following.mute(person, number, person.user_id)
    by = Actor(person.user_id, "", "127.0.0.1")
    mail_settings.change(person, values={"signature": "Yours, us", "blocked": ["@spam.example"]}, version=0, by=by)
    setup.change(person, "custom_fields", "{}", seen=setup.read(person), by=by, told=({}, {"fields": "one"}))
    group = group_changes.add(person, "Billing", Assigning.TURN, version=setup.read(person).version, by=by)
    agent_changes.set_members(person, group, [person.user_id], by=by)
    assert assigning.assign(person, group, [number])
    saved_views.save(person, "Angry ones", "status=any&rating=bad", is_desks=True, by=by)
    _rules(person, number, by)
    dressed = {"name": "Help", "colour": "#0a6a7b", "language": "de"}
    looks.change(person, values=dressed, version=0, by=by, logo=encoded("PNG"))
    section = sections.add(person, "Printers", by=by)
    for is_public in (True, False):
        text = Text("Printers that burn", "Use *water*.", section.id, is_public)
        article = article_changes.create(person, text, by=by)
        article_changes.publish(person, int(article.number), text, edit=1, by=by)
    shown: dict[str, Any] = {"is_on": True, "asks_name": True, "asks_priority": False, "takes_files": True}
    shown |= {"intro": "", "next_steps": "We ring you.", "origins": ["https://www.example.com"]}
    shown |= {"own_fields": ["text_1"], "needed_fields": ["text_1"]}
    form_settings.change(person, values=shown, version=0, by=by)
    sent = SentForm(f"ada@{where}.example.org", "The mill", "It stands.")
    receiving.receive(person, sent, challenges.issue(person, bits=0))
    given = Given("Refund a parcel", "refund", "Hello {requester}", "resolved", ("money",), "me")
    answer = [answer_changes.create(person, given, shared=shared, by=by).answer_id for shared in (True, False)]
    uses = Uses(person, answer)
    commenting.comment(person, number, body="It works again.", cc=[f"grace@{where}.example.org"], companion=uses)
    message_ids.remember(person, "0100018f-one-000000", number)
    arrived = Envelope(f"first-{where}", f"ada@{where}.example.org", (f"{where}@desk.example.org",), clock.stamp())
    filed = ledger.new(person.repository, keys.digest(f"first {where}"), arrived, size=700, subject="The note")
    text = FromLetter(keys.digest(f"first {where}"), folded="> quoted", marks=("unconfirmed",), cc=("cc@example.org",))
    creating.create(
        person, title="The note", requester=ada, companion=LetterRecord(person.repository, filed), letter=text
    )
    refused = ledger.new(person.repository, keys.digest(f"second {where}"), arrived, size=7, subject="Buy")
    ledger.note(person.repository, refused, state=ledger.WAITING, reason="It is spam.", open_to_people=True)


def _rules(person: TenantContext, number: int, by: Actor) -> None:
    then = {"add_tags": ["late"], "mail": {"to": person.user_id, "text": "See {ticket}"}}
    given = {"when": {"event": "due"}, "if": {"priority": "high"}, "then": then}
    rule = rule_changes.create(person, "Late ones", given, by=by, is_on=True)
    event, pk = rule_keys.event_id(clock.stamp(), uuid.uuid4().hex), person.repository.key(rule_keys.runs)
    cause = Cause(rule.rule_id, 1, event, 1)
    run_id = cause.run_id(number)
    done: dict[str, Any] = {"run_id": run_id, "version": 1, "number": number, "event": "due", "at": clock.stamp()}
    done |= {"cause": str(cause), "expires_at": _later()}
    put_all([RunItem(pk, rule_keys.run(rule.rule_id, run_id), rule_id=rule.rule_id, **done)])
    put_all([RunCountItem(pk, rule_keys.hour(clock.stamp()), runs=1, expires_at=_later())])


def _systems(world: World, where: str) -> None:
    set_targets(world.context(_owner(where), where), TargetRule(first=HOUR, solution=8 * HOUR))
    client = api_client(world, where=where)
    assert client.send("/tickets", {"title": "From a system"}, Idempotency_Key="once").status_code == 201
    assert client.ask("/tickets").status_code == 200


def _delivery(world: World, where: str) -> None:
    by = Actor(world.users[_owner(where)].id)
    removed, _ = endpoint(world.context(_owner(where), where), "https://old.example.com/", types=("ticket.created",))
    endpoint(world.context(_owner(where), where), types=("ticket.created",))
    person = world.context(_owner(where), where)
    number = creating.create(person, title="Told")
    (row,) = [r for r in rows() if r.subject == f"ticket/{number}" and r.event_id.startswith(person.tenant_id)]
    destination = sorted(row.open or ())[0]
    dead_deliveries.keep(Work(person.repository, row, 0, publisher.member_parts(destination)[1]), reason="No answer.")
    log = webhook_keys.log_partition(person.tenant_id, removed.endpoint_id)
    sort = webhook_keys.log_key(row.timestamp, "evt")
    put_all([DeliveryItem(log, sort, event_type="x", url="u", state="dead", expires_at=_later())])
    waiting = Transaction()
    due.put(waiting, person, clock.stamp(clock.now() + timedelta(days=365)), "example", f"ticket/{number}", 1)
    person.repository.transact(waiting)
    endpoints.remove(person, endpoint_id=removed.endpoint_id, by=by)
    holds.pause(tenant_directory.get(person.tenant_id), by=SYSTEM)


def _imports(folder: Path) -> None:
    assert archives.imported(archives.write(folder / "archive.json", archives.issue(7, comments=1))).status == 0


def _follow(world: World) -> None:
    """Do what the stream worker does, and what people ask of it."""
    index_all()
    follower = Follower()
    follower.fold()
    for where in ("acme", "globex"):
        tenant = world.context(_owner(where), where)
        index_rebuild.rebuild(tenant.repository)
        put_aside(tenant.tenant_id, 99)
        with follower.following():
            stream_barrier.wait_until_applied(tenant.repository)
            for command in ("verify_aggregates", "verify_search"):
                ended = run(command, "--tenant", where)
                assert "TRACEBACK" not in ended.err, ended
        commenting.comment(tenant, 1, body="New since the index was made.")
    indexing.index(follower.batch())


def _operators(world: World) -> None:
    for tenant in world.tenants.values():
        reshard_requests.begin(tenant_directory.get(tenant.tenant_id), shards=2, by=SYSTEM)
        former = ReshardItem(
            past(PAST_RESHARDINGS, tenant.tenant_id), clock.stamp(), tenant_id=tenant.tenant_id, slug=tenant.slug,
            title=tenant.name, from_shards=2, to_shards=1, state="done", phase="", begun_at=clock.stamp(),
        )  # fmt: skip
        provisioning.create_placed(tenant.tenant_id, Placement("bridge"))
        own_tables = DirectoryItem(
            PLACED, placed_key(tenant.tenant_id, "bridge"), tenant_id=tenant.tenant_id, title="bridge",
            created_at=clock.stamp(),
        )  # fmt: skip
        own = StreamSource(tenant.tenant_id, Placement("bridge")).name(TICKETS)
        arn = f"arn:aws:dynamodb:eu-central-1:1:table/Pooldesk.{tenant.tenant_id}.{TICKETS.name}/stream/1"
        positions.note_stream(own, arn)
        positions.add(arn, "shard", parent="")
        positions.give_heartbeat(arn, me="poller")
        move = MoveItem(
            moving_keys.MOVES, tenant.tenant_id, tenant_id=tenant.tenant_id, slug=tenant.slug, title=tenant.name,
            move_id="m", from_place="pool", to_place="bridge", state="done", phase="", begun_at=clock.stamp(),
        )  # fmt: skip
        put_all([move])
        put_all([MarkerItem(fencing.move_key(tenant.tenant_id), "FENCE", expires_at=_later())])
        put_all([former])
        record = import_keys.import_source(tenant.tenant_id, SOURCE)
        put_all([SeedItem(record, SOURCE, day="2026-11-22", users=1, planned=0)])
        put_all([own_tables])
        put_all([ArrivingItem(ARRIVING, f"former-{tenant.slug}", tenant_id=tenant.tenant_id, file="")])


def _exports(world: World) -> None:
    for who, where in (("alice", "acme"), ("charlie", "globex")):
        owner = world.context(who, where)
        export_requests.ask(owner, by=Actor(owner.user_id, f"{who}@example.com"))
        bulk_requests.ask(owner, TicketEdit.of({}, add_tags=["seen"]), numbers={1: None}, by=Actor(owner.user_id))
        rule = rule_changes.create(owner, "Tag", {"then": {"add_tags": ["new"]}}, by=Actor(owner.user_id))
        rehearsal_requests.ask(owner, rule, by=Actor(owner.user_id))
        isolation_requests.ask(owner, by=Actor(owner.user_id, f"{who}@example.com"))
    with override_settings(CERTIFICATE_KEY="11" * 32):
        run_job.follower(a_second=1e6).turn()
    rehearsal_job.follower(per_second=1e6).turn()
    export_job.follower(parts_a_second=1000.0).turn()
    bulk_job.follower().turn()


def _shared_rows(world: World) -> None:
    """Let processes tell of both desks in one row, as they do."""
    ids = [tenant.tenant_id for tenant in world.tenants.values()]
    heat = {"2026-11-22T12:00:0": {json.dumps([one, "OPEN", 0]): 7.0 for one in ids}}
    tallies = json.dumps({one: NoiseTally(requests=1).stored() for one in ids})
    put_all(
        [
            SharePostItem(
                limit_keys.POSTS, "p", counter=1, asked=json.dumps(dict.fromkeys(ids, 1.5)), expires_at=_later()
            ),
            HeatItem(HEAT, "w", windows=json.dumps(heat), told_at=clock.stamp()),
            NoiseItem(noise_keys.notes_of(int(BEGAN) // 60), "web#p#1", tallies=tallies, expires_at=_later()),
            *(CostItem(one, "2026-11-22", stored_bytes=4000, file_bytes=0, expires_at=_later()) for one in ids),
            PlatformCostItem(NO_TENANT, "2026-11-22", expires_at=_later()),
            RouteCostItem(routes_of("2026-11-22"), "GET /tickets/#1.2.0", expires_at=_later()),
            *(UsageItem(one, "2026-11-22T12:00", requests=3, units=4, expires_at=_later()) for one in ids),
            *(
                DisturbedDayItem(one, noise_keys.disturbed_on("2026-11-22"), minutes={720}, expires_at=_later())
                for one in ids
            ),
            IncidentDayItem(noise_keys.incidents_of("2026-11"), "2026-11-22", minutes={720}, expires_at=_later()),
        ]
    )


def keep_to_its_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a holding look for noise around the minute that the desk has some in, however long ago that was made.

    Each minute is a Query; the product looks through hours of them.
    """
    monkeypatch.setattr(noise_holdings, "KEPT_MINUTES", 2)
    monkeypatch.setattr(noise_holdings, "time", SimpleNamespace(time=lambda: BEGAN))


def _later() -> int:
    return int(time.time()) + 3600
