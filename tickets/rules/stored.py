"""Declare how rules are stored: their table with every version, and beside the tickets what they did.

All rules of a desk are in one partition: the current ones, which the engine reads by one Query, and each version that
there ever was. A version outlives its rule, because the history of tickets leads to it. The table is not placed:
changes are written with rows of the audit trail, and no transaction spans two placements.

A run is written in the transaction of what it changes, in the table of the tickets. Its key says which rule ran for
which event on which ticket, so it can be written once. TTL removes it after RUN_SECONDS.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from typing import Any, Final

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import FilePlace, Holding, Raw, Reader, Stage, StoredItem, declare_holding, declare_people
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.stored import JobItem, jobs
from tickets.rules import definition
from tickets.ticket.stored import TICKETS

RULES = Table("Support.Rules", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS)
REHEARSALS: Final = keys.part("REHEARSAL")  # the directory's partition of rehearsals
MOST: Final = 30  # rules of a desk
RUN_SECONDS: Final = 30 * 86400  # for which a run is kept, and can be undone

# --- keys ---

_RULE: Final = "RULE"
_VERSION: Final = "VERSION"
CURRENT: Final = keys.beginning(_RULE)
VERSIONS: Final = keys.beginning(_VERSION)
_ID: Final = re.compile(r"rule_[0-9a-f]{20}\Z")
_RUN_ID: Final = re.compile(r"[0-9]{20}-[0-9a-f]{32}-[1-9][0-9]{0,14}\Z")


def new_id() -> str:
    """Return a fresh id of a rule. Ids sort by time."""
    return f"rule_{time.time_ns() // 1_000_000:012x}{uuid.uuid4().hex[:8]}"


def is_id(text: str) -> bool:
    """Tell whether a text has the form of a rule's id."""
    return _ID.match(text) is not None


def is_run_id(text: str) -> bool:
    """Tell whether a text has the form of a run's id."""
    return _RUN_ID.match(text) is not None


def rules(tenant_id: str) -> str:
    """Return the partition key of a desk's rules."""
    return keys.collection(tenant_id, "RULES")


def rule(rule_id: str) -> str:
    return keys.joined(_RULE, rule_id)


def version(rule_id: str, number: int) -> str:
    """Return the sort key of a version of a rule. They count from 1 and sort by their numbers."""
    return keys.joined(_VERSION, rule_id, f"{int(keys.whole_number(number, 'a version', least=1)):06}")


def versions(rule_id: str) -> str:
    """Return the beginning of the sort keys of a rule's versions."""
    return keys.beginning(_VERSION, rule_id)


def runs(tenant_id: str) -> str:
    """Return the partition key of what a desk's rules did."""
    return keys.collection(tenant_id, "RUNS")


def event_id(stamp: str, row_id: str) -> str:
    """Return the id of an event, of the moment and the id of its row in the outbox. Ids sort by time."""
    return f"{re.sub('[^0-9]', '', stamp)}-{row_id}"


def run(rule_id: str, run: str) -> str:
    return keys.joined("RUN", rule_id, run)


def runs_of(rule_id: str) -> str:
    """Return the beginning of the sort keys of a rule's runs."""
    return keys.beginning("RUN", rule_id)


def hour(stamp: str, rule_id: str = "", number: int = 0) -> str:
    """Return the sort key of the number of runs in the hour of this moment, of all rules or of one on one ticket."""
    if not rule_id:
        return keys.joined("HOUR", stamp[:13])
    return keys.joined("HOUR", stamp[:13], rule_id, keys.whole_number(number, "the number of a ticket", least=1))


def rehearsals(tenant_id: str) -> str:
    """Return the partition key of what a desk's rehearsals go through and find."""
    return keys.collection(tenant_id, "REHEARSALS")


def rehearsal_part(plan: str, number: int) -> str:
    """Return the sort key of a part of a rehearsal. Part 0 has the tickets; those with findings count from 1."""
    return keys.joined(plan, f"{int(keys.whole_number(number, 'a part')):06}")


def rehearsal_part_number(sort: str) -> int:
    return int(keys.split(sort)[-1])


declare(
    RULES,
    grants=(
        Grant("tenant", RULES, ("GetItem", "Query")),
        Grant("platform", RULES, ("DeleteItem", "PutItem", "UpdateItem")),
        Grant("platform", DIRECTORY, ("GetItem",), "ReadRehearsals", leading_keys=REHEARSALS),
    ),
)


# --- items ---


class RuleItem(Item):
    """A rule as it is. `definition` is what `definition.dumped` made. `version` grows with each change of name or
    definition, `revision` also when it is switched on or off."""

    table = RULES

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    rule_id = UnicodeAttribute()
    name = UnicodeAttribute()
    is_on = BooleanAttribute(default=False)
    version = NumberAttribute(default=1)
    revision = NumberAttribute(default=1)
    definition = UnicodeAttribute()
    created_at = UnicodeAttribute()
    changed_at = UnicodeAttribute()


class RuleVersionItem(Item):
    """A version of a rule, made at `made_at`."""

    table = RULES

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    rule_id = UnicodeAttribute()
    name = UnicodeAttribute()
    version = NumberAttribute()
    definition = UnicodeAttribute()
    made_at = UnicodeAttribute()


class RunItem(Item):
    """Hold what a rule did for one event with one ticket.

    `entry` is the id of the entry that its changes have in the history of the ticket, at `at`, which made `made` of it;
    0 where nothing was changed. `why` says why it could do nothing, "" where it could. `answer` is the sort key of its
    comment, once that is written. `event` is the kind of the event, `cause` what causes.py says of the run. A run that
    was undone has the moment in `undone_at`.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    rule_id = UnicodeAttribute()
    run_id = UnicodeAttribute()
    version = NumberAttribute()
    number = NumberAttribute()
    event = UnicodeAttribute()
    cause = UnicodeAttribute()
    at = UnicodeAttribute()
    entry = UnicodeAttribute(default="")
    made = NumberAttribute(default=0)
    why = UnicodeAttribute(default="")
    answer = UnicodeAttribute(default="")
    undone_at = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()


class RunCountItem(Item):
    """The number of runs that a desk, or one rule on one ticket, has begun in an hour."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    runs = NumberAttribute(default=0)
    expires_at = NumberAttribute(null=True)


class RehearsalItem(JobItem):
    """The last rehearsal of a desk.

    `state` is running, cancelling, done, cancelled or failed; `phase` is listing or trying. It tries the rule `rule_id`
    in `rule_version`; `by_id` is the member who asked. It goes through what happened after `since`
    and until `begun_at`. `plan` names the parts: of `total` tickets the first `met` are through. Of these, `events` are
    counted, those for which the rule `would_act`, the tickets that it would have `touched`, the events in which it
    would be `refused`, and those from which it would have come in `circles`. `tally` is JSON: how often it would have
    made which change. `is_cut` is 1 where more tickets have changed. `why` says why it failed.
    """

    rule_id = UnicodeAttribute()
    rule_version = NumberAttribute()
    by_id = UnicodeAttribute()
    since = UnicodeAttribute()
    plan = UnicodeAttribute(default="")
    total = NumberAttribute(default=0)
    is_cut = NumberAttribute(default=0)
    met = NumberAttribute(default=0)
    events = NumberAttribute(default=0)
    would_act = NumberAttribute(default=0)
    touched = NumberAttribute(default=0)
    refused = NumberAttribute(default=0)
    circles = NumberAttribute(default=0)
    tally = UnicodeAttribute(default="[]")
    why = UnicodeAttribute(default="")


class RehearsalPartItem(Item):
    """A part of a rehearsal: `content` is JSON, of the numbers of the tickets or of what was found of some of them."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    content = UnicodeAttribute()
    expires_at = NumberAttribute()


# --- holdings ---


def _stored(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(RULES, rules(reader.tenant_id))


def _runs(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, runs(reader.tenant_id))


def _is_definition(text: str) -> bool:
    return bool(definition.loaded(text))


def _forms() -> tuple[RowForm, ...]:
    def of_rule(tenant_id: str, item: Raw) -> tuple[str, str]:
        return rules(tenant_id), rule(_id(item))

    def of_version(tenant_id: str, item: Raw) -> tuple[str, str]:
        return rules(tenant_id), version(_id(item), int(item["version"]["N"]))

    checks: dict[str, row_forms.Check] = {"definition": _is_definition}
    of_rules = checks | row_forms.moments("created_at", "changed_at")
    return (
        RowForm(RuleItem, of_rule, begins=CURRENT, checks=of_rules),
        RowForm(RuleVersionItem, of_version, begins=VERSIONS, checks=checks | row_forms.moments("made_at")),
    )


def _id(item: Raw) -> str:
    found: Any = item["rule_id"]["S"]
    if not is_id(found):
        raise ValueError("this is no id of a rule")
    return str(found)


class FewRules:
    """Looks that a file has no more rules than a desk can have."""

    of = ("rules",)

    def __init__(self) -> None:
        self._met = 0

    def look(self, holding: str, item: Raw, place: FilePlace) -> str:
        """Take a rule, or a version of one."""
        self._met += item["sk"]["S"].startswith(CURRENT)
        return f"is one of more than {MOST} rules" if self._met > MOST else ""

    def fault(self) -> None:
        """Find nothing more at the end of the file."""


declare_holding(
    Holding("rules", (RULES,), _stored, Stage.OWN, forms=_forms, together=FewRules),
    Holding(
        "runs of rules",
        (TICKETS,),
        _runs,
        Stage.CONTENT,
        left_out="the history of each ticket tells of them, and they are forgotten after 30 days",
    ),
)
_FORGOTTEN = "it can be made again, and is forgotten after a week"


def _rehearsed(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, rehearsals(reader.tenant_id))


declare_holding(
    jobs("rehearsals of rules", REHEARSALS, Stage.CONTENT, left_out=_FORGOTTEN),
    Holding("findings of rehearsals", (TICKETS,), _rehearsed, Stage.CONTENT, left_out=_FORGOTTEN),
)
declare_people("rules", "tickets.rules.people_in_rules")


declare_keys(RULES, {"rule": "TENANT#<tenant>|RULES, <part>"})
declare_keys(
    TICKETS, {"rule run": "TENANT#<tenant>|RUNS, <part>", "rehearsal part": "TENANT#<tenant>|REHEARSALS, <part>"}
)
declare_keys(DIRECTORY, {"rehearsal": "REHEARSAL, <tenant>"})
