"""The store of the followers of a stream, under a policy and guard of their own: its refused requests are Rejected."""

from __future__ import annotations

from typing import Final

from portal.dynamo.store import Store

WORKER: Final = Store("worker")
