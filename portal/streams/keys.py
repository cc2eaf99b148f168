"""Form the keys of what the followers of a stream store."""

from __future__ import annotations

from typing import Final

PULSE: Final = "PULSE"  # sort key beside the leases of a stream's shards
