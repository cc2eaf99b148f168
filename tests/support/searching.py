"""The search index in the hands of a test."""

from __future__ import annotations

from tests.support.folding import Follower
from tickets.search import index_lookup
from tickets.search.index import indexing


def index_all() -> None:
    """Index all that was written since the tables were made, as a stream worker does."""
    outcome = indexing.index(Follower().batch())
    assert not outcome.failed
    index_lookup.forget()  # as a process that has just been started
