"""Form the keys of what processes tell each other of tenants' rates."""

from __future__ import annotations

from typing import Final

POSTS: Final = "POSTS"  # the partition of all processes' posts, each written by its process alone
