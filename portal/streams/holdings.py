"""Say what followers of streams note."""

from __future__ import annotations

from portal.schema.holdings import declare_nothing
from portal.streams.tables import LEASES

declare_nothing(LEASES, "it says how far streams are followed, which are all tenants'")
