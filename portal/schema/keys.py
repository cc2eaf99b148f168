"""Form keys: the one module in which `#` and `|` are key delimiters. Packages declare their own builders on top of it.

A tenant id is 32 lower-case hex digits: fixed width, no delimiter, no wildcard, so that no id is a prefix of
another and `TENANT#<id>|*` in a policy matches one tenant exactly. Every function that takes a tenant id takes it
first and raises ValueError for anything else: a malformed id is a bug, never a user's mistake. The parts of a key hold
no delimiter and no control character, so that different parts never form the same key.

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
PLATFORM: Final = "0" * 32  # stands for a tenant where events belong to none; no tenant ever has this id
_PART: Final = re.compile(r"[^#|\x00-\x1f\x7f]{1,512}\Z")
_COLLECTION: Final = re.compile(r"TENANT#([0-9a-f]{32})\|([^#|]+)((?:#[^#|]+)*)\Z")

# The patterns that a policy binds leading keys to: `{tenant}` stands for the tenant's id, `*` for anything. The
# delimiter after the id is what keeps one tenant's pattern from matching another's.
OWN_COLLECTIONS: Final = "TENANT#{tenant}|*"
OWN_ID: Final = "{tenant}"
OWN_COMPOSITES: Final = "{tenant}#*"
ALL_COLLECTIONS: Final = "TENANT#*|*"


# --- keys of tenants ---


def tenant(tenant_id: str) -> str:
    """Return the partition key of a table whose partitions are tenants: the checked id itself."""
    if not isinstance(tenant_id, str) or not TENANT_ID.match(tenant_id):
        raise ValueError("a tenant id is 32 lower-case hex digits")
    return tenant_id


def user(user_id: str) -> str:
    """Return the key of a person in a table of people: the checked id itself."""
    if not isinstance(user_id, str) or not USER_ID.match(user_id):
        raise ValueError("a user id is 32 lower-case hex digits")
    return user_id


def collection(tenant_id: str, name: str, *parts: str) -> str:
    """Return the partition key of a tenant's item collection: `TENANT#<id>|<name>`, then `#<part>` for each part."""
    return f"TENANT#{tenant(tenant_id)}|{joined(name, *parts)}"


def composite(tenant_id: str, *parts: str) -> str:
    """Return the partition key of an index whose partitions lie within a tenant: `<id>#<part>`."""
    return f"{tenant(tenant_id)}#{joined(*parts)}"


def belongs_to(tenant_id: str, partition_key: str) -> bool:
    """Tell whether a partition key of a tenant-scoped table is this tenant's."""
    return partition_key == tenant(tenant_id) or partition_key.startswith((f"TENANT#{tenant_id}|", f"{tenant_id}#"))


def collection_parts(partition_key: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Take apart what `collection` formed: tenant id, name and parts; None for any other key."""
    match = _COLLECTION.match(partition_key)
    return (match[1], match[2], tuple(match[3].split("#")[1:])) if match else None


def of_any_tenant(name: str) -> str:
    """Return the pattern, for a policy, of every tenant's collection of this name."""
    return f"TENANT#*|{part(name)}"


# --- parts of keys ---


def part(value: str, what: str = "this value") -> str:
    """Return a text that may stand between delimiters; raise ValueError, naming `what`, for any other."""
    if not isinstance(value, str) or not _PART.match(value):
        raise ValueError(f"{what} cannot stand in a key")
    return value


def whole_number(value: int, what: str, *, least: int = 0) -> str:
    """Return a whole number as a part of a key; raise ValueError below `least` and for anything that is no int."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{what} is a whole number from {least}")
    return str(value)


def joined(*parts: str) -> str:
    """Join parts into a sort key, or into the rest of a partition key: `<part>#<part>`."""
    return "#".join([part(p) for p in parts])


_ESCAPED: Final = str.maketrans({"%": "%25", "#": "%23", "|": "%7C"})


def escaped(text: str) -> str:
    """Return a text that may hold delimiters, as mail addresses may, as a part of a key. No two texts give the same."""
    return text.translate(_ESCAPED)


def labelled(label: str, text: str) -> str:
    """Return `<label>#<text>`, where the text may hold anything: it comes last, so that it cannot be mistaken for a
    part."""
    return f"{part(label)}#{text}"


def beginning(*parts: str) -> str:
    """Return the common beginning, delimiter included, of all keys that `joined` forms from these parts and more."""
    return f"{joined(*parts)}#"


def split(key: str) -> list[str]:
    """Return the parts of what `joined` formed."""
    return key.split("#")


# --- digests: where a key must not hold the text itself, or the text may be of any length ---


def digest(text: str, *, size: int = 16) -> str:
    """Hash a text to 2 x `size` hex digits."""
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def anonymous(text: str) -> str:
    """Stand in for a text, such as a person's address, where an id is wanted: 32 hex digits, without regard to case."""
    return digest(text.strip().casefold())
