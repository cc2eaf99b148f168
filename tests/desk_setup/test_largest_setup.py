"""The forms of a desk's setup cost no more than they declare at the largest setup that the limits allow.

Each request of a test is held to the bound of its route: `tests/support/held_costs.py`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from portal import clock
from tenants.membership.stored import MemberItem
from tests.desk_setup.test_setup import incompressible
from tests.support.stored import put_all
from tests.support.world import World
from tickets.custom_fields.definitions import (
    CHOICES_LIMIT,
    FIELDS_LIMIT,
    HELP_LIMIT,
    KINDS_LIMIT,
    NAME_LIMIT,
    REQUIRED,
    TEMPLATE_LIMIT,
    CustomField,
    Definitions,
    TicketKind,
)
from tickets.desk_setup import setup
from tickets.desk_setup.setup import AgentGroup
from tickets.desk_setup.stored import ROOM, SETUP, SetupItem, pack
from tickets.groups.agent_changes import MEMBERS_LIMIT
from tickets.groups.group_changes import GROUPS_LIMIT
from tickets.groups.stored import AgentItem
from tickets.sla.policy_versions import MOST_RULES
from tickets.ticket.custom_values import TEXT_LIMIT
from tickets.ticket.due_marks import TARGETS
from tickets.ticket.fields import TAG_LIMIT

WIDE = "\N{GRINNING FACE}"  # four bytes of UTF-8, as no character has more
FORM_ROOM = 250  # bytes of a part that a form may add


def name(number: int, mark: str) -> str:
    return f"{mark}{number:02}".ljust(NAME_LIMIT, WIDE)


def largest() -> Definitions:
    kinds = tuple(TicketKind(f"kind_{n}", name(n, "k")) for n in range(1, KINDS_LIMIT))
    forms = {one.id: REQUIRED for one in kinds} | {"": REQUIRED}
    choices = tuple(f"{n}".ljust(TEXT_LIMIT, WIDE) for n in range(CHOICES_LIMIT))
    fields = [CustomField(f"text_{n}", name(n, "f"), WIDE * HELP_LIMIT, (), forms) for n in range(2, FIELDS_LIMIT)]
    return Definitions((CustomField("choice_1", name(1, "f"), "", choices, forms), *fields), kinds, "kind_1")


def fill(world: World) -> None:
    """Give the desk a setup that is as large as can be, but for what a form adds."""
    groups = setup.written_groups(AgentGroup(f"group_{n}", name(n, "g")) for n in range(1, GROUPS_LIMIT))
    parts = {"custom_fields": pack(largest().text), "groups": pack(groups)}
    left = ROOM - FORM_ROOM - sum(map(len, parts.values()))
    colours = {incompressible(left - 60): "1", "red": "1", "green": "1"}
    parts["tag_colours"] = pack(json.dumps(colours))
    tenant_id, at = world.tenants["acme"].tenant_id, clock.stamp()
    agents = [*people(1), *people(1 + MEMBERS_LIMIT)]
    put_all(
        [
            SetupItem(tenant_id, SETUP, version=1, **parts),
            *(
                MemberItem(
                    tenant_id, one, email=f"{one}@example.com", name=WIDE * NAME_LIMIT, role="agent", created_at=at
                )
                for one in agents
            ),
            *(AgentItem(tenant_id, one, groups={"group_2"}) for one in people(1)),
        ]
    )


USED, UNUSED = "2", "0"


def kind_form(**more: str) -> dict[str, str]:
    return {"name": name(99, "k"), "template": WIDE * TEMPLATE_LIMIT, "is_default": "on", **more}


def field_form(use: str) -> dict[str, str]:
    return {"name": name(99, "f"), "help": WIDE * HELP_LIMIT, "type": "text"} | {
        f"in_{one}": use for one in ("", *largest().kinds_by_id)
    }


def asks(use: str) -> dict[str, str]:
    return {f"of_{one}": use for one in largest().by_id}


def people(start: int) -> list[str]:
    return [f"{n:032x}" for n in range(start, start + MEMBERS_LIMIT)]


def group_form(members: list[str]) -> dict[str, Any]:
    return {"name": name(99, "g"), "assigns": "load", "members": members, "is_default": "on"}


def targets() -> dict[str, str]:
    rows: dict[str, str] = {}
    for n in range(MOST_RULES):
        row = {"priority": "urgent", "group": f"group_{n + 1}", "kind": f"kind_{n % (KINDS_LIMIT - 1) + 1}"}
        times = {what: f"{n * place + 1} h {n + place} min" for place, what in enumerate(TARGETS, 3)}
        rows |= {f"rule_{n}_{what}": value for what, value in (row | times).items()}
    hours = {f"hours_{day}": f"0{day}:0{day}-12:00, 13:0{day}-17:00" for day in range(7)}
    return {**rows, **hours, "warning": "25", "country": "DE", "region": "BY", "version": "0"}


# The forms of the largest setup, with what is sent. Each is sent to the setup that `fill` makes.
FIELDS, GROUPS = "desk/settings/fields/", "desk/settings/groups/"
FORMS: dict[str, Callable[[], dict[str, Any]]] = {
    f"{FIELDS}kinds/new/": lambda: kind_form() | asks(USED),
    f"{FIELDS}kinds/kind_2/": lambda: kind_form() | asks(UNUSED),
    f"{FIELDS}kinds/kind_1/": lambda: kind_form(is_archived="on") | asks(USED),
    f"{FIELDS}new/": lambda: field_form(USED),
    f"{FIELDS}text_2/": lambda: field_form(UNUSED),
    f"{FIELDS}choice_1/": lambda: field_form(UNUSED) | {"choices": "x", "is_archived": "on"},
    f"{FIELDS}move/": lambda: {"id": "choice_1", "by_places": "1"},
    f"{GROUPS}new/": lambda: group_form(people(1)),
    f"{GROUPS}group_2/": lambda: group_form(people(MEMBERS_LIMIT - 5)),
    f"{GROUPS}group_3/delete/": dict,
    "desk/settings/targets/": targets,
    "tickets/tags/edit/?tag=blue": lambda: {"act": "colour", "tag": "blue", "colour": "2"},
    "tickets/tags/edit/?tag=red": lambda: {"act": "rename", "tag": "red", "to": WIDE * TAG_LIMIT},
    "tickets/tags/edit/?tag=green": lambda: {"act": "delete", "tag": "green"},
}


@pytest.mark.parametrize("path", FORMS)
def test_a_form_of_the_setup_takes_no_more_than_it_declares_at_the_largest_setup(world: World, path: str) -> None:
    fill(world)
    browser = world.browser("alice", "acme")
    answer: Any = browser.send(f"/{path}", {"version": "1"} | FORMS[path]())
    assert answer.status_code == 302, html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode()))
