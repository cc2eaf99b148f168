"""A version works beside a newer one: whatever that has added to a stored item is still there after this one has
changed the item, and what it cannot read of a value, it leaves out of a page and not out of the store."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final

import pytest
from pynamodb.attributes import MapAttribute

from delivery.queues import holds
from delivery.webhooks import endpoints
from portal.dynamo.client import KeepsUnknown
from portal.dynamo.compiled_reader import reader_of
from portal.load.measurement import NoiseTally
from portal.schema import registry
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import desk_settings, tenant_lifecycle
from tenants.membership import mail_choices, member_changes
from tenants.membership.mail_choices import MailKind
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import Role
from tests.support import used_desk
from tests.support.commands import in_pool
from tests.support.data_model import below, models
from tests.support.folding import Follower
from tests.support.stored import put_all, send
from tests.support.world import World
from tickets.articles import article_changes, articles, catalogue, sections
from tickets.articles.articles import Text
from tickets.counting import coding
from tickets.counting.stored import RECENT, VerifiedItem
from tickets.custom_fields.definitions import Definitions
from tickets.dashboards.verify_runs import VerifyState
from tickets.desk import changing, commenting
from tickets.desk.changing import Wishes
from tickets.desk_setup import setup
from tickets.letters import ledger
from tickets.letters.stored import digest_of
from tickets.notices import following
from tickets.notices.telling import TicketNotice
from tickets.outside import looks
from tickets.public_form import form_settings
from tickets.public_form.form_settings import FormSettings
from tickets.purging.purge_requests import HoldingCount, counts_of
from tickets.purging.stored import PurgeItem
from tickets.replies import mail_settings
from tickets.requesters import bounced_addresses, requester_changes, requesters
from tickets.saved_views.saved_views import texts_of, views_of
from tickets.saved_views.stored import DESK, ViewsItem
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import TICKETS
from tickets.verification.verify import Difference

ADDED = "from_a_newer_version"
VALUE = {"S": "to be kept"}
# By table and the end of the key: what is written anew, from an item that keeps everything, with each change of that.
COPIES = re.compile(
    r"Platform\.Directory TENANT \w+"  # of a tenant
    r"|Support\.Articles .*ARTICLE#1 PUBLISHED|Support\.Articles .*HELP (ARTICLE|PUBLIC)#\d+"  # of an article's draft
    r"|Support\.Requesters .*ADDRESS"  # of a requester
    r"|Support\.Tickets .*AGGREGATE BARRIER#.*"  # the answer to one question, which goes by TTL
)


def test_a_model_writes_back_what_it_does_not_declare() -> None:
    for model in models():
        key = {name: {"S": "k"} for name in model.table.key_names}
        assert model.from_raw_data({**key, ADDED: VALUE}).serialize(null_check=False)[ADDED] == VALUE, model


@pytest.mark.parametrize("kind", [one for one in below(MapAttribute) if one.__module__.startswith("tickets")])
def test_a_map_in_an_item_does_so_too(kind: type[Any]) -> None:
    assert issubclass(kind, KeepsUnknown)
    assert reader_of(kind)({ADDED: VALUE})._container_serialize(null_check=False)[ADDED] == VALUE


# --- what the rules write ---


def stored_items() -> dict[tuple[str, ...], dict[str, Any]]:
    """All items of all tables, by table and key."""
    return {
        (table.name, *(raw[name]["S"] for name in table.key_names)): raw
        for table in registry.tables()
        for raw in in_pool(table)
    }


def add_to_everything() -> None:
    """Let a newer version have written something of its own into each item, and into each file that an item lists."""
    for table in registry.tables():
        for raw in in_pool(table):
            for file in raw.get("files", {}).get("L", ()):
                file["M"][ADDED] = VALUE
            send("PutItem", TableName=table.full_name, Item={**raw, ADDED: VALUE})


def change_everything(world: World) -> None:
    """Use the desk as an admin, an agent, their systems and the workers do."""
    alice, by = world.context("alice", "acme"), Actor(world.users["alice"].id)
    tenant_id, repository = alice.tenant_id, alice.repository

    changing.change(alice, 1, Wishes(title="Put out", priority=Priority.LOW, tags=["x"], status=Status.OPEN))
    commenting.comment(alice, 1, body="Once more.")
    following.follow(alice, 2, alice.user_id)
    mail_choices.refuse(repository, alice.user_id, MailKind.ASSIGNED)

    ada = requesters.ensure(alice, "ada@acme.example.org")
    requester_changes.change(alice, ada.id, lambda one: replace(one, name="Ada King"), version=None, by=by)
    bounced_addresses.note(alice, "ada@acme.example.org", "Gone.")
    eve = requesters.ensure(alice, "eve@acme.example.org")
    requester_changes.merge(alice, ada.id, eve.id, by=by)

    mail_settings.change(alice, values={"signature": "Yours"}, version=1, by=by)
    looks.change(alice, values={"name": "Helper", "colour": "", "language": "de"}, version=1, by=by)
    form = form_settings._item(alice)
    values = asdict(FormSettings.of(form)) | {"intro": "Ask us."}
    form_settings.change(alice, values=values, version=int(form.version) if form else 0, by=by)
    (section,) = sections.listed(alice)
    sections.rename(alice, section.id, "Plotters", "", by=by)
    draft = articles.draft(alice, 1)
    text = Text("Plotters that burn", "Use *sand*.", section.id, is_public=True)
    article_changes.publish(alice, 1, text, edit=int(draft.edit), by=by)

    (waiting,) = ledger.waiting(repository, limit=5)[0]
    ledger.discard(repository, ledger.get(repository, digest_of(waiting.pk)))

    (one, *_) = endpoints.listed(repository)
    endpoints.rotate(alice, endpoint_id=one.endpoint_id, version=None, by=by)
    endpoints.pause(alice, endpoint_id=one.endpoint_id, by=by)
    tenant = tenant_directory.get(tenant_id)
    holds.resume(tenant, by=SYSTEM)

    world.join("charlie", "acme", Role.AGENT)
    member_changes.set_role(user_id=world.users["bob"].id, tenant_id=tenant_id, role=Role.ADMIN, seen=Role.AGENT, by=by)
    accounts.set_password(world.users["bob"].id, "another long password", by=by)
    desk_settings.rename(alice, name="Umbrellas", slug=used_desk.SLUG, by=by)
    tenant_lifecycle.suspend(tenant_id, by=SYSTEM)
    Follower().fold()


def test_rules_keep_what_a_newer_version_has_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used_desk.keep_to_its_minutes(monkeypatch)
    world = used_desk.prepared(tmp_path)
    before = stored_items()
    add_to_everything()
    change_everything(world)
    after = stored_items()
    changed = [key for key in before.keys() & after.keys() if {**before[key], ADDED: VALUE} != after[key]]
    lost = sorted(" ".join(key) for key in changed if after[key].get(ADDED) != VALUE)
    assert [one for one in lost if not COPIES.fullmatch(one)] == []
    assert {table for table, *_ in changed} >= {
        "Admin.Users", "Audit.Chains", "Events.Endpoints", "Events.Secrets", "Platform.Memberships", "Platform.Users",
        "Support.Articles", "Support.Letters", "Support.Mail", "Support.Outside", "Support.Requesters",
        "Support.Tickets", "Tenants.Config",
    }  # fmt: skip


# --- what it cannot read of a value ---


RUN: Final[dict[str, Any]] = {"state": "drift", "started_at": ""}


def with_counts(text: str) -> PurgeItem:
    return PurgeItem("PURGES", "t", counts=text)


@pytest.mark.parametrize(
    ("read", "is_same"),
    [
        (lambda: counts_of(with_counts('{"tickets": {"counted": 3, "new": 1}}')), {"tickets": HoldingCount(3)}),
        (lambda: TicketNotice.read('["entered", 7, "A#1", "new"]'), TicketNotice(MailKind.ENTERED, 7, "A#1")),
        (lambda: NoiseTally.read(range(99)), NoiseTally(*range(len(fields(NoiseTally))))),
        (
            lambda: VerifyState(VerifiedItem(**RUN, found='[["TOTALS", "open", 1, 2, "new"]]')).differences,
            [Difference("TOTALS", "open", 1, 2)],
        ),
        (lambda: coding.short("TOTALS", coding.long("TOTALS", "zz")), "zz"),
        (lambda: coding.known(Counter({coding.long("PEOPLE", "ada?"): 1, "open": 2})), Counter(open=2)),
    ],
    ids=["counts of a purge", "notice", "noise", "differences", "code of a count", "names of counts"],
)  # fmt: skip
def test_members_that_a_newer_version_has_added_are_left_out(read: Callable[[], Any], is_same: Any) -> None:
    assert read() == is_same


def test_a_section_of_the_help_centre_keeps_them(world: World) -> None:
    alice, by = world.context("alice", "acme"), Actor(world.users["alice"].id)
    made = sections.add(alice, "Printers", by=by)
    centre = catalogue.read_centre(alice)
    centre.sections = json.dumps([[made.id, made.name, made.about, "an icon"]])
    put_all([centre])
    sections.add(alice, "Plotters", by=by)
    sections.rename(alice, made.id, "Old printers", "", by=by)
    kept, _ = json.loads(catalogue.read_centre(alice).sections)
    assert kept == [made.id, "Old printers", "", "an icon"]


def test_saved_views_and_definitions_of_fields_and_kinds_keep_them() -> None:
    views = json.dumps([["v1", "Mine", "status=open", "an icon"]])
    assert texts_of(views_of(ViewsItem("t", DESK, views=views))) == views
    fields = '"fields":[{"id":"text_1","name":"Serial","unit":"m"}]'
    stored = f'{{"default_kind":"",{fields},"kinds":[{{"colour":"red","id":"kind_1","name":"Fault"}}]}}'
    assert Definitions.parse(stored).text == stored
    groups = '[{"assigns":"skill","colour":"red","id":"group_1","name":"Billing"}]'
    assert setup.written_groups(setup.parsed_groups(groups)) == groups


def test_a_dashboard_shows_what_it_knows_of_counts_with_a_newer_one_among_them(world: World) -> None:
    world.tickets("acme", 3)
    Follower().fold()
    (recent,) = (raw for raw in in_pool() if raw["sk"]["S"] == RECENT)
    part = next(name for name in recent if name.startswith("T"))
    new = {f"{part.rpartition(':')[0]}:zz": {"N": "5"}}
    send("PutItem", TableName=TICKETS.full_name, Item={**recent, **new})
    page = world.browser("alice", "acme").get("/tickets/dashboard/")
    assert page.status_code == 200
    world.tickets("acme", 4)
    Follower().fold()
    assert new.items() <= stored_items()["Support.Tickets", recent["pk"]["S"], RECENT].items()
