"""Store the members of a tenant and its invitations; declare which of them are exported, moved and purged with it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel
from portal.nosql.session_store import SessionStore
from portal.nosql.stored import SESSIONS, SessionByUser, SessionItem
from portal.schema import holdings, keys, row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding, own_partition
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import Check, RowForm
from tenants.audit_trail.stored import AUDIT
from tenants.sign_in import impersonation_session
from tenants.sign_in.stored import USERS, email_key, folded
from tenants.tenancy.context import MEMBER_ROLES
from tenants.tenancy.stored import MEMBERSHIPS

INVITES = Table("Tenants.Invites", "tenant", "tenant_id", "invite_id")
# Which invitations' mails did not get through. It holds no right of anybody's.
UNREACHED = Table("Tenants.Unreached", "tenant", "tenant_id", "invite_id", ttl="expires_at")
MEMBERS = Table("Admin.Users", "tenant", "tenant_id", "user_id")
# Outsiders who may see the audit pages for a time. They are no members: whatever lists members has none of them.
AUDITORS = Table("Tenants.Auditors", "tenant", "tenant_id", "user_id", ttl="kept_until")


class MemberByName(IndexModel):
    """A member of a tenant in the order of names, as small as what a page says of them: a desk may have thousands."""

    table = MEMBERS
    label = "gsi-name"
    leading_keys = keys.OWN_ID

    tenant_id = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    user_id = UnicodeAttribute()
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    profile = UnicodeAttribute(null=True)


declare(
    INVITES,
    UNREACHED,
    MEMBERS,
    AUDITORS,
    grants=(
        Grant("tenant", MEMBERS, ("BatchGetItem", "GetItem", "Query")),
        Grant("tenant", INVITES, ("GetItem", "Query")),
        Grant("tenant", UNREACHED, ("Query", "UpdateItem")),
        Grant("platform", UNREACHED, ("PutItem",)),
        Grant("platform", INVITES, ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem")),
        Grant("tenant", AUDITORS, ("GetItem", "Query")),
        Grant("platform", AUDITORS, ("DeleteItem", "PutItem", "UpdateItem")),
        Grant("platform", MEMBERS, ("ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem")),
    ),
)


def invite_link_key(hashed_token: str) -> str:
    """Return the partition key of what an invitation's link leads to, formed from the hash of the link's token."""
    return keys.joined("INVITE", hashed_token)


def invited_key(address: str) -> str:
    """Return the partition key, in Platform.Memberships, of the pending invitations of an address: one per tenant."""
    return keys.labelled("INVITED", folded(address))


class MemberItem(Item):
    """A membership as the tenant sees it: somebody to whom a ticket can be assigned. `unwanted_mail` and
    `unwanted_notices` are kinds of events that this person does not want to be told of by mail or in the inbox, and
    `digest_hour` is when they get one mail a day, missing where they get it at once; `weekly_report` and
    `monthly_letter` are 1 where they want these; see mail_choices.py. `profile` is a copy of the account's, and
    `signature` stands under this person's replies by mail; see own_profile.py."""

    table = MEMBERS

    tenant_id = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    created_at = UnicodeAttribute()
    unwanted_mail = UnicodeSetAttribute(null=True)
    profile = UnicodeAttribute(null=True)
    signature = UnicodeAttribute(null=True)
    unwanted_notices = UnicodeSetAttribute(null=True)
    digest_hour = NumberAttribute(null=True)
    weekly_report = NumberAttribute(null=True)
    monthly_letter = NumberAttribute(null=True)


class InviteItem(Item):
    """A pending invitation as its tenant sees it.

    `invited_by` is the id of the member who sent it last, with whose right it stands. `link` is the key of the
    InviteLinkItem: a hash of the link's secret, not the secret. That of an auditor has the `name` that the owner gave,
    the `purpose`, and `access_until`, the stamp at which the access will end.
    """

    table = INVITES

    tenant_id = UnicodeAttribute(hash_key=True)
    invite_id = UnicodeAttribute(range_key=True)
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    invited_by = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    created_at = UnicodeAttribute()
    sent_at = UnicodeAttribute()
    expires_at = UnicodeAttribute()
    link = UnicodeAttribute()
    name = UnicodeAttribute(null=True)
    purpose = UnicodeAttribute(null=True)
    access_until = UnicodeAttribute(null=True)


class AuditorItem(Item):
    """An auditor's access as the tenant sees it. It ends at `ends_at`; `kept_until`, in seconds since 1970, is when it
    is forgotten. `invited_by` is the id of the owner who gave it."""

    table = AUDITORS

    tenant_id = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    email = UnicodeAttribute()
    purpose = UnicodeAttribute()
    invited_by = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    begun_at = UnicodeAttribute()
    ends_at = UnicodeAttribute()
    kept_until = NumberAttribute()


class UnreachedItem(Item):
    """Records that the invitation mail written at `sent_at` was not delivered: when this was known, and why."""

    table = UNREACHED

    tenant_id = UnicodeAttribute(hash_key=True)
    invite_id = UnicodeAttribute(range_key=True)
    sent_at = UnicodeAttribute()
    at = UnicodeAttribute()
    why = UnicodeAttribute()
    expires_at = NumberAttribute()


class InviteLinkItem(Item):
    """The target of an invitation's link. It is deleted when the invitation is used, revoked or sent again."""

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute()
    invite_id = UnicodeAttribute()
    invited_by = UnicodeAttribute()


class InvitedItem(Item):
    """An invitation as the invited person sees it. Its key allows one per address and tenant."""

    table = MEMBERSHIPS

    platform_user_id = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(range_key=True)
    invite_id = UnicodeAttribute()
    role = UnicodeAttribute()
    tenant_name = UnicodeAttribute()
    invited_by = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    expires_at = UnicodeAttribute()


_members = own_partition(MEMBERS)
_auditors = own_partition(AUDITORS)
_invitations = own_partition(INVITES)
_unreached = own_partition(UNREACHED)


def _memberships(reader: Reader) -> Iterator[StoredItem]:
    people = (row["user_id"]["S"] for find in (_members, _auditors) for _, row, _ in find(reader))
    return reader.get(MEMBERSHIPS, *((person, reader.tenant_id) for person in dict.fromkeys(people)))


def _invited(reader: Reader) -> Iterator[StoredItem]:
    addresses = (invited_key(row["email"]["S"]) for _, row, _ in _invitations(reader))
    return reader.get(MEMBERSHIPS, *((address, reader.tenant_id) for address in addresses))


def _links(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(USERS, *((row["link"]["S"], None) for _, row, _ in _invitations(reader)))


def _people(reader: Reader) -> dict[str, None]:
    """Return the ids of everybody who is or was here: the audit trail names those who are not any more."""
    found = {row["user_id"]["S"]: None for _, row, _ in _members(reader)}
    for _, row, _ in reader.query(AUDIT, reader.tenant_id):
        named = (row["actor_id"]["S"], row["entity_id"]["S"])
        found |= dict.fromkeys(text for text in named if keys.USER_ID.match(text))
    return found


def _sessions(reader: Reader) -> Iterator[StoredItem]:
    for person in _people(reader):
        known = reader.query(SESSIONS, person, index=SessionByUser.gsi)
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
    return "" if item["role"]["S"] in MEMBER_ROLES else "has a role that nobody has"


def _is_profile(text: str) -> bool:
    told = json.loads(text)
    return isinstance(told, dict) and row_forms.are_texts([*told.values()])


def _member_forms() -> tuple[RowForm, ...]:
    checks: dict[str, Check] = {
        "user_id": keys.USER_ID.match,
        "profile": _is_profile,
        "digest_hour": row_forms.between(0, 23),
        "weekly_report": row_forms.between(0, 1),
        "monthly_letter": row_forms.between(0, 1),
        **row_forms.moments("created_at"),
    }
    return (RowForm(MemberItem, lambda own, item: (own, item["user_id"]["S"]), checks=checks, whole=_wrong),)


_OF_THIS_PLACE = "an account is of one installation; the members name who is to have one"

declare_holding(
    Holding("members", (MEMBERS,), _members, Stage.OWN, forms=_member_forms),
    Holding("auditors", (AUDITORS,), _auditors, Stage.OWN, left_out="the access is to one installation, and ends"),
    Holding("memberships", (MEMBERSHIPS,), _memberships, Stage.BESIDE, left_out=_OF_THIS_PLACE),
    Holding("sessions", (SESSIONS,), _sessions, Stage.BESIDE, without=_without_desk, left_out=_OF_THIS_PLACE),
    Holding("invitations", (INVITES,), _invitations, Stage.OWN, left_out="its link leads to where it was sent from"),
    Holding("invited people", (MEMBERSHIPS,), _invited, Stage.BESIDE, left_out="it goes with its invitation"),
    Holding("invitation links", (USERS,), _links, Stage.BESIDE, left_out="it goes with its invitation"),
    Holding("unreached invitations", (UNREACHED,), _unreached, Stage.OWN, left_out="it goes with its invitation"),
)
holdings.declare_people("members", "tenants.membership.members")
holdings.declare_people("auditors", "tenants.membership.auditors")
holdings.declare_people("invitations", "tenants.membership.invitations")


declare_keys(INVITES, {"invitation": ""})
declare_keys(UNREACHED, {"unreached invitation": ""})
declare_keys(MEMBERS, {"member": ""}, indexes={"members by name": "gsi-name"})
declare_keys(AUDITORS, {"auditor": ""})
declare_keys(USERS, {"invitation link": "INVITE#<token>"})
