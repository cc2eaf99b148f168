"""Make tickets what they were at a moment: a change like any other, by the person who restores, with its entry.

Nothing is overwritten that the person has not seen: each ticket is named with the version that they saw, and one that
others have changed since in the same fields is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import chunked
from portal.errors import Conflict, Invalid, NotFound, PortalError
from portal.plain_text import amount
from portal.schema import keys
from portal.web.locales import in_sentence
from tenants.audit_trail import recording
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy.context import Role, TenantContext
from tickets.desk import changing
from tickets.desk.changing import TicketState, Wishes
from tickets.ticket.fields import ASSIGNEE, BY_NAME, CUSTOM, DESCRIPTION
from tickets.time_machine import past_tickets
from tickets.time_machine.past_tickets import PastTicket, ThenAndNow

MOST: Final = 50  # tickets that are restored at once
SAME: Final = gettext_noop("the same now as then")
_AT_A_TIME: Final = 8


@dataclass(frozen=True)
class Recipients:
    """Hold the members of now by id, and by their pseudonyms those who were erased."""

    members: Mapping[str, Member]
    erased: frozenset[str]


@dataclass(frozen=True)
class Lack:
    """Name a field that cannot be restored, and say why. `of_member` says that it can once a member is restored."""

    field: str
    why: str
    of_member: bool = False

    @property
    def label(self) -> str:
        return BY_NAME[self.field].label


@dataclass(frozen=True)
class Restored:
    """Report what became of one ticket. `left` says why nothing of it was restored, unless that is for its `lacks`."""

    number: int
    is_changed: bool = False
    left: str = ""
    lacks: tuple[Lack, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Tell whether the ticket is now what it was then."""
        return not self.lacks and (self.is_changed or self.left == SAME)

    @property
    def why(self) -> str:
        """Return why it is not restored whole, or was not changed; "" where all of it was restored."""
        said = _("%(field)s not restored: %(why)s")
        lacking = [said % {"field": in_sentence(lack.label), "why": lack.why} for lack in self.lacks]
        return _(self.left) if self.left else "; ".join(lacking)


def restore(tenant: TenantContext, tickets: Sequence[TicketState], at: str, *, by: Actor) -> list[Restored]:
    """Restore up to MOST tickets, named as somebody saw them, to this moment, a stamp.

    Each is a change of its own: some may be restored and others not. Raises Invalid for none, and for too many.
    """
    check(tickets)
    done: list[Restored] = []
    try:
        for some in chunked(tickets, _AT_A_TIME):
            done += fan_out([partial(_restore, tenant, state, at) for state in some])
    finally:
        _record(tenant, [one.number for one in done if one.is_changed], at, by)
    return done


def check(tickets: Sequence[TicketState]) -> None:
    """Raise Invalid for no tickets, and for more than MOST."""
    if not tickets:
        raise Invalid(_("Select tickets first."))
    if len(tickets) > MOST:
        sentence = _("At most %(most)s tickets can be restored together; you selected %(count)s.")
        raise Invalid(sentence % {"most": MOST, "count": len(tickets)})


def recipients(tenant: TenantContext, found: Iterable[ThenAndNow]) -> Recipients:
    """Return those of the assignees of then to whom these tickets can go back: one consistent BatchGetItem."""
    assignees = {one.then.values[ASSIGNEE.name] for one in found if one.then and ASSIGNEE.name in one.differing}
    wanted = [one for one in assignees if one and keys.USER_ID.match(one)]
    present = members.members_with(tenant.repository, wanted)
    return Recipients({m.id: m for m in present}, frozenset(ErasedPeople.parse(tenant.erased).pseudonyms))


def look(tenant: TenantContext, numbers: Sequence[int], at: str) -> list[ThenAndNow]:
    """Return tickets then and now, to be shown before they are restored: what `past_tickets.read` costs for each."""
    found: list[ThenAndNow] = []
    for some in chunked(numbers, _AT_A_TIME):
        found += fan_out([partial(past_tickets.read, tenant, number, at) for number in some])
    return found


def _restore(tenant: TenantContext, state: TicketState, at: str) -> Restored:
    number = state.number
    try:
        found = past_tickets.read(tenant, number, at)
        if found.then is None:
            return Restored(number, left=gettext_noop("not restored: it was opened later"))
        people = recipients(tenant, [found])
        wishes, lacks = wishes_for(found.then, found.now, found.differing, at, people)
        before = int(found.summary.version)
        present = changing.change(tenant, number, wishes, version=state.version, whole=True)
    except NotFound:
        return Restored(number, left=gettext_noop("not restored: there is no such ticket"))
    except Conflict:
        return Restored(number, left=gettext_noop("not restored: it was changed meanwhile"))
    except PortalError as error:
        if error.status >= 500:
            raise
        return Restored(number, left=_("not restored: %(why)s") % {"why": error.message.rstrip(".")})
    is_changed = int(present.summary.version) != before
    return Restored(number, is_changed, "" if is_changed or lacks else SAME, lacks)


def wishes_for(
    then: PastTicket, now: PastTicket, differing: Collection[str], at: str, people: Recipients
) -> tuple[Wishes, tuple[Lack, ...]]:
    """Return the change that restores this, and of the fields that differ those that it has to leave out."""
    lacks = [Lack(DESCRIPTION.name, _("only its length was kept"))] if then.values[DESCRIPTION.name] is None else []
    if ASSIGNEE.name in differing and (unable := _unable(then, people)):
        lacks.append(unable)
    is_given_back = ASSIGNEE.name in differing and all(lack.field != ASSIGNEE.name for lack in lacks)
    values = {name: value for name, value in then.values.items() if not BY_NAME[name].is_fixed}
    values[CUSTOM.name] = {**dict.fromkeys(now.values[CUSTOM.name], ""), **values[CUSTOM.name]}  # what came since goes
    if not is_given_back:
        values[ASSIGNEE.name] = None
    wishes = Wishes(**values, restoring=f"restored the ticket as of {clock.parse(at):%-d %B %Y, %H:%M:%S} UTC:")
    return wishes, tuple(lacks)


def _unable(then: PastTicket, people: Recipients) -> Lack | None:
    """Return why the assignee of then cannot have the ticket again, None where they can and for nobody."""
    name, assignee = then.resolver_name, then.values[ASSIGNEE.name]
    if assignee is None:
        return Lack(ASSIGNEE.name, _("of %(name)s only the name was kept") % {"name": name})
    if assignee in people.erased:
        return Lack(ASSIGNEE.name, _("%(name)s is no longer known") % {"name": name})
    if assignee and assignee not in people.members:
        return Lack(ASSIGNEE.name, _("%(name)s is no longer a member") % {"name": name}, of_member=True)
    if assignee and not people.members[assignee].role.at_least(Role.AGENT):
        told = {"name": name, "role": people.members[assignee].role.with_article}
        return Lack(ASSIGNEE.name, _("%(name)s is %(role)s now") % told, of_member=True)
    return None


def _record(tenant: TenantContext, numbers: list[int], at: str, by: Actor) -> None:
    if not numbers:
        return
    name = amount(len(numbers), "ticket")
    after = {"as of": at, "tickets": ", ".join(map(str, numbers))}
    recording.record(
        AuditEntry(tenant.tenant_id, AuditAction.TICKETS_RESTORED, by, "tickets", "past", name, after=after)
    )
