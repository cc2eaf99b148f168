"""Check the slug of a tenant: the name that stands in front of its pages' addresses."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from portal.errors import Invalid

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")
# What stands at the beginning of other addresses, now or perhaps one day.
_RESERVED_WORDS: Final = """
    about account admin api app assets auth billing blog callback contact dashboard desk desks docs download events
    health healthz help hooks impersonation inbound invitation invitations legal login logout mail media metrics new
    oauth operator operators password pooldesk portal pricing privacy public robots search security session sessions
    settings sign-in sign-out sign-up signin signout signup sso static status support switch teams tenant tenants terms
    tickets user users webhook webhooks well-known www
"""
SLUG_RULE: Final = "Use 1-40 lowercase letters, digits or hyphens."
RESERVED: Final = frozenset(_RESERVED_WORDS.split())


def slug_of(name: str) -> str:
    """Return a slug for a name: "Müller & Söhne" gives "muller-sohne"."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:40].strip("-")


def valid_slug(slug: str) -> str:
    """Return the slug. Raises Invalid where it has the wrong form or is reserved."""
    if slug.startswith("-") or slug.endswith("-"):
        raise Invalid("Begin and end with a letter or digit.", field="slug")
    if not _SLUG.match(slug):
        raise Invalid(SLUG_RULE, field="slug")
    if slug in RESERVED:
        raise Invalid(f"The name {slug} is reserved. Choose another one.", field="slug")
    return slug
