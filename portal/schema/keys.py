"""Every key of every table, as pure functions. The only module in which `#` and `|` are key delimiters.

A tenant id is 32 lower-case hex digits: fixed width, no delimiter, no wildcard, so that no id is a prefix
of another and `TENANT#<id>|*` in a policy matches one tenant exactly. All builders of tenant keys take the
tenant id first and refuse anything else with ValueError: a malformed id is a bug, never a user's mistake.

Source of the composite form `TENANT#<t>|TICKET#<n>`: AWS, "Amazon DynamoDB data modeling for Multi-Tenancy,
part 2". Source of the fixed-width id: the same article's policy, which without a delimiter lets tenant 1
read tenant 10.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

TENANT_ID: Final = re.compile(r"[0-9a-f]{32}\Z")
USER_ID: Final = TENANT_ID
_PART: Final = re.compile(r"[^#|\x00-\x1f\x7f]{1,512}\Z")

SUMMARY: Final = "SUMMARY"
DETAIL: Final = "DETAIL"
ACTIVITY_PREFIX: Final = "ACTIVITY#"
COUNTER_TICKET: Final = "TICKET"
UNASSIGNED: Final = "UNASSIGNED"
VERIFIED: Final = "VERIFIED"  # sorts behind all aggregates
PULSE: Final = "PULSE"  # sort key beside the leases of a stream's shards
PLATFORM: Final = "0" * 32  # stands for a tenant where events belong to none; no tenant ever has this id
_TICKET: Final = re.compile(r"TENANT#([0-9a-f]{32})\|TICKET#([1-9][0-9]*)\Z")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


# What a policy binds leading keys to: `{tenant}` stands for the tenant's id, `*` for anything. The delimiter after
# the id is what keeps one tenant's pattern from matching another's.
OWN_COLLECTIONS: Final = "TENANT#{tenant}|*"
OWN_ID: Final = "{tenant}"
OWN_COMPOSITES: Final = "{tenant}#*"
ALL_AGGREGATES: Final = "TENANT#*|AGGREGATE"


def _tenant(tenant_id: str) -> str:
    if not isinstance(tenant_id, str) or not TENANT_ID.match(tenant_id):
        raise ValueError("a tenant id is 32 lower-case hex digits")
    return tenant_id


def _part(value: str, what: str) -> str:
    if not isinstance(value, str) or not _PART.match(value):
        raise ValueError(f"{what} cannot stand in a key")
    return value


# --- tables whose partition key is the tenant id itself ---


def tenant(tenant_id: str) -> str:
    """Partition key of Tenants.Config and Admin.Users."""
    return _tenant(tenant_id)


# --- Audit.AdminActions: the partition is the tenant's id, or PLATFORM ---


def audit_row(at: str, event_id: str) -> str:
    """Sort key of an audited event, in the table and in its indexes: they sort by time."""
    return f"{_part(at, 'a timestamp')}#{_part(event_id, 'an event id')}"


def audited_at(row: str) -> str:
    """The timestamp in what `audit_row` made."""
    return row.partition("#")[0]


def audit_actor(tenant_id: str, actor: str) -> str:
    """Partition key of gsi-actor: what one person did in one tenant."""
    return f"{_tenant(tenant_id)}#{_part(actor, 'an actor')}"


def audit_entity(tenant_id: str, kind: str, entity_id: str) -> str:
    """Partition key of gsi-entity: what was done to one thing."""
    return f"{_tenant(tenant_id)}#{_part(kind, 'a kind')}#{_part(entity_id, 'an id')}"


def anonymous(text: str) -> str:
    """Stands for a text, such as an address of a person, where an id is wanted: 32 hex digits, always the same."""
    return hashlib.blake2b(text.strip().casefold().encode(), digest_size=16).hexdigest()


# --- Support.Tickets ---


def ticket(tenant_id: str, number: int) -> str:
    """Partition key of one ticket's item collection. `number` counts from 1 within the tenant."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError("a ticket number is a positive integer")
    return f"TENANT#{_tenant(tenant_id)}|TICKET#{number}"


def counter(tenant_id: str) -> str:
    """Partition key of the tenant's counters; sort key `COUNTER_TICKET` holds the last ticket number."""
    return f"TENANT#{_tenant(tenant_id)}|COUNTER"


def request(tenant_id: str, request_id: str) -> str:
    """Partition key of an idempotency record: one request id creates one ticket, however often it is sent."""
    return f"TENANT#{_tenant(tenant_id)}|REQUEST#{_part(request_id, 'a request id')}"


def import_source(tenant_id: str, source: str) -> str:
    """Partition key of what was imported from one archive; the sort key is the row's own id in there."""
    digest = hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
    return f"TENANT#{_tenant(tenant_id)}|IMPORT#{digest}"


def aggregate(tenant_id: str) -> str:
    """Partition key of what the stream worker maintains: `totals`, `tags` and `day` are its sort keys."""
    return f"TENANT#{_tenant(tenant_id)}|AGGREGATE"


def totals(epoch: int) -> str:
    """Sort key of the counts of all tickets. An epoch begins with each rebuild; readers add all of them up."""
    return f"TOTALS#{_epoch(epoch)}"


def tags(epoch: int) -> str:
    """Sort key of the counts by tag."""
    return f"TAGS#{_epoch(epoch)}"


def day(date: str, epoch: int) -> str:
    """Sort key of what happened on one day, "2026-11-20" in UTC."""
    if not _DAY.match(date):
        raise ValueError("a day is written as 2026-11-20")
    return f"DAY#{date}#{_epoch(epoch)}"


def first_day(date: str) -> str:
    """The bound from which on a Query meets the days from this one on, then the totals and tags, and no more days."""
    return day(date, 0)


def aggregate_parts(sort_key: str) -> tuple[str, str, int] | None:
    """Kind ("TOTALS", "TAGS" or "DAY"), date ("" where there is none) and epoch; None for another sort key."""
    kind, _, rest = sort_key.partition("#")
    date, _, epoch = rest.rpartition("#")
    if kind not in ("TOTALS", "TAGS", "DAY") or bool(date) != (kind == "DAY") or not epoch.isdigit():
        return None
    return kind, date, int(epoch)


def letter(sequence: str, aggregate_key: str) -> str:
    """Sort key of a dead letter: a padded sequence number, and the one aggregate it is about, "" for all of them."""
    return f"{sequence}#{aggregate_key}" if aggregate_key else sequence


def settled_letters(stream: str) -> str:
    """Partition key of what remembers that dead letters of this stream were replayed or dropped."""
    return f"{stream}/SETTLED"


def _epoch(number: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError("an epoch is a number from 0")
    return number


def proof(tenant_id: str) -> str:
    """Partition key of the only items that a proof of isolation writes, and removes again."""
    return f"TENANT#{_tenant(tenant_id)}|PROOF"


def activity(at: str, entry_id: str) -> str:
    """Sort key of a comment, note or timeline event. `at` is ISO 8601 UTC with microseconds, so keys sort by time."""
    return f"{ACTIVITY_PREFIX}{_part(at, 'a timestamp')}#{_part(entry_id, 'an entry id')}"


def entry_id(activity_key: str) -> str:
    """The entry id in what `activity` made."""
    return activity_key.rpartition("#")[2]


def tenant_status(tenant_id: str, status: str, shard: int) -> str:
    """Partition key of both ticket indexes: one tenant, one status, one shard."""
    if shard < 0:
        raise ValueError("a shard is a number from 0")
    return f"TENANT#{_tenant(tenant_id)}|{_part(status, 'a status')}#{shard}"


def resolver_updated(resolver: str, updated_at: str) -> str:
    """Sort key of gsi-status-resolver. `resolver` is a user id, or "" for nobody: UNASSIGNED keeps the row indexed."""
    return f"{_part(resolver or UNASSIGNED, 'a resolver')}#{updated_at}"


def resolver_prefix(resolver: str) -> str:
    """What every `resolver_updated` of this resolver begins with, delimiter included."""
    return f"{_part(resolver or UNASSIGNED, 'a resolver')}#"


def status_shard(number: int, shards: int) -> int:
    """The shard of a ticket among `shards` (1 or more): blake2b of its number, so stable across processes.

    The character-product hash printed in AWS's write-sharding page sends 20,000 UUIDs into one suffix; this
    one spreads evenly.
    """
    if shards < 1:
        raise ValueError("there is at least one shard")
    if shards == 1:
        return 0
    digest = hashlib.blake2b(str(number).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def ticket_number(tenant_id: str, pk: str) -> int | None:
    """The number in a ticket's partition key, or None when the key is not a ticket of this tenant.

    Lists use it to drop an index row that another tenant has planted: the row's base key gives it away.
    """
    prefix = f"TENANT#{_tenant(tenant_id)}|TICKET#"
    rest = pk[len(prefix) :] if pk.startswith(prefix) else ""
    return int(rest) if rest.isascii() and rest.isdigit() and rest[0] != "0" else None


def owner_of(pk: str) -> tuple[str, int] | None:
    """Tenant and number of a ticket's partition key, or None for anything else. For readers of the stream only."""
    match = _TICKET.match(pk)
    return (match[1], int(match[2])) if match else None


def belongs_to(tenant_id: str, partition_key: str) -> bool:
    """Whether a partition key of a tenant-scoped table is this tenant's."""
    return partition_key == _tenant(tenant_id) or partition_key.startswith((f"TENANT#{tenant_id}|", f"{tenant_id}#"))


# --- platform tables: the stated exceptions, read before a tenant is known ---


def user(user_id: str) -> str:
    """Partition key of an account in Platform.Users."""
    if not isinstance(user_id, str) or not USER_ID.match(user_id):
        raise ValueError("a user id is 32 lower-case hex digits")
    return f"USER#{user_id}"


def email(address: str) -> str:
    """Partition key of the item that makes an address unique. The address is folded to lower case."""
    folded = address.strip().casefold()
    if not folded or len(folded.encode()) > 320 or any(ord(c) < 32 for c in folded):
        raise ValueError("not an e-mail address")
    return f"EMAIL#{folded}"


def slug(value: str) -> str:
    """Partition key of the item that makes a tenant's slug unique, beside the accounts."""
    return f"SLUG#{_part(value, 'a slug')}"


def invite_token(token: str) -> str:
    """Partition key of what an invitation's link leads to. Only a hash of the link's secret is stored."""
    return f"INVITE#{hashlib.blake2b(token.encode(), digest_size=32).hexdigest()}"


def invited(address: str) -> str:
    """Partition key, in Platform.Memberships, of an address's pending invitations: one per tenant."""
    return f"INVITED#{email(address).partition('#')[2]}"


def session(session_key: str) -> str:
    """Partition key of a session: a hash of the key in its cookie.

    So neither the table nor its index, a cursor or a page holds anything that somebody could sign in with.
    """
    return hashlib.blake2b(session_key.encode(), digest_size=16).hexdigest()


def throttle(kind: str, subject: str, window: int) -> str:
    """Partition key of a sign-in counter: `kind` is "account" or "address", `window` a number of a time slot.

    The subject is hashed: the table then holds no addresses, and any length and character is safe.
    """
    digest = hashlib.blake2b(subject.strip().casefold().encode(), digest_size=16).hexdigest()
    return f"{_part(kind, 'a kind')}#{digest}#{window}"
