"""Declare members and invitations, and what is kept of both outside of the tenant's own tables."""

from __future__ import annotations

from collections.abc import Iterator

from portal.nosql.items import SessionItem
from portal.nosql.session_store import SessionStore
from portal.nosql.tables import SESSIONS, SESSIONS_BY_USER
from portal.schema import keys as all_keys
from portal.schema import row_forms
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding
from portal.schema.row_forms import Check, RowForm
from tenants.audit_trail.tables import AUDIT
from tenants.membership import keys
from tenants.membership.items import MemberItem
from tenants.membership.tables import INVITES, MEMBERS, UNREACHED
from tenants.sign_in import impersonation_session
from tenants.sign_in.stored import USERS, email_key
from tenants.tenancy.roles import Role
from tenants.tenancy.stored import MEMBERSHIPS


def _members(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(MEMBERS, reader.tenant_id)


def _invitations(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(INVITES, reader.tenant_id)


def _unreached(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(UNREACHED, reader.tenant_id)


def _memberships(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(MEMBERSHIPS, *((row["user_id"]["S"], reader.tenant_id) for _, row, _ in _members(reader)))


def _invited(reader: Reader) -> Iterator[StoredItem]:
    addresses = (keys.invited(row["email"]["S"]) for _, row, _ in _invitations(reader))
    return reader.get(MEMBERSHIPS, *((address, reader.tenant_id) for address in addresses))


def _links(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(USERS, *((row["link"]["S"], None) for _, row, _ in _invitations(reader)))


def _people(reader: Reader) -> dict[str, None]:
    """Return the ids of everybody who is or was here: the audit trail names those who are not any more."""
    found = {row["user_id"]["S"]: None for _, row, _ in _members(reader)}
    for _, row, _ in reader.query(AUDIT, reader.tenant_id):
        named = (row["actor_id"]["S"], row["entity_id"]["S"])
        found |= dict.fromkeys(text for text in named if all_keys.USER_ID.match(text))
    return found


def _sessions(reader: Reader) -> Iterator[StoredItem]:
    for person in _people(reader):
        known = reader.query(SESSIONS, person, index=SESSIONS_BY_USER)
        pinned = [row for _, row, _ in known if row.get("tenant_id", {}).get("S") == reader.tenant_id]
        yield from reader.get(SESSIONS, *((row["session_key"]["S"], None) for row in pinned))


def _without_desk(tenant_id: str, raw: Raw) -> Raw | None:
    """Return the session without the desk that is pinned to it: who had it open stays signed in. None for that of an
    operator who acts as a member there."""
    session, store = SessionItem.from_raw_data(raw), SessionStore()
    if impersonation_session.of_item(session) is not None:
        return None
    data = {name: value for name, value in store.decode(session.data).items() if value != tenant_id}
    return {name: value for name, value in raw.items() if name != "tenant_id"} | {"data": {"S": store.encode(data)}}


def _wrong(tenant_id: str, item: Raw) -> str:
    """Say what is wrong with a member. A role that nobody knows would keep the person out of all their desks."""
    if item["user_id"]["S"] == tenant_id:
        return "names nobody"
    email_key(item["email"]["S"])
    return "" if item["role"]["S"] in list(Role) else "has a role that nobody has"


def _member_forms() -> tuple[RowForm, ...]:
    checks: dict[str, Check] = {"user_id": all_keys.USER_ID.match, **row_forms.moments("created_at")}
    return (RowForm(MemberItem, lambda own, item: (own, item["user_id"]["S"]), checks=checks, whole=_wrong),)


_OF_THIS_PLACE = "an account is of one installation; the members name who is to have one"

declare_holding(
    Holding("members", (MEMBERS,), _members, Stage.OWN, forms=_member_forms),
    Holding("memberships", (MEMBERSHIPS,), _memberships, Stage.BESIDE, left_out=_OF_THIS_PLACE),
    Holding("sessions", (SESSIONS,), _sessions, Stage.BESIDE, without=_without_desk, left_out=_OF_THIS_PLACE),
    Holding("invitations", (INVITES,), _invitations, Stage.OWN, left_out="its link leads to where it was sent from"),
    Holding("invited people", (MEMBERSHIPS,), _invited, Stage.BESIDE, left_out="it goes with its invitation"),
    Holding("invitation links", (USERS,), _links, Stage.BESIDE, left_out="it goes with its invitation"),
    Holding("unreached invitations", (UNREACHED,), _unreached, Stage.OWN, left_out="it goes with its invitation"),
)
