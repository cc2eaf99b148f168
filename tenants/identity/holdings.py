"""Say that accounts and counters of attempts are nobody's but the platform's."""

from __future__ import annotations

from portal.schema.holdings import declare_nothing
from tenants.identity.tables import THROTTLES

declare_nothing(THROTTLES, "it counts attempts by hashes of accounts and networks, for some hours")
