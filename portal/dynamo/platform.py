"""The stated exception: reads and writes that are not one tenant's.

Signing in, resolving who is calling, and what operators do happen before or beside any tenant. They go through
the platform connection, under a policy of its own, and through this module alone. A test names the few modules
that may import it, or a model of a platform table; another one that tries is a failing build.

Source: Spotlight, "Cross-tenant exception: Platform.Memberships": treat new code that reads it as authentication.
"""

from __future__ import annotations

from typing import Final

from portal.dynamo.store import Store

PLATFORM: Final = Store("platform")
