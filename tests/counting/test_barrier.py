"""A barrier is passed when every shard of before, or a descendant, has shown a marker; no clock has a say in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from portal import clock
from portal.streams import positions, shards
from portal.streams.batch import batch_of
from portal.streams.shards import Listing, Shard
from portal.streams.stored import ShardItem
from tenants.tenancy.context import TenantContext
from tests.support import commands
from tests.support.folding import ARN
from tests.support.world import World
from tickets.counting import stored, stream_barrier
from tickets.counting.stream_barrier import WorkerAway
from tickets.counting.stream_handler import handle
from tickets.ticket.stored import TICKETS


class Tree:
    """A stream whose shards split and merge as a test says. Markers come by in the shards of `turns`, one by one."""

    def __init__(self, tenant: TenantContext, *known: Shard) -> None:
        self.tenant, self.known = tenant, list(known)
        self.turns: Iterator[str] = iter(())
        self.answered: dict[str, str] = {}  # shard by marker

    def listing(self, arn: str) -> Listing:
        return Listing(tuple(self.known), "")

    def work(self, sentence: str) -> None:
        """Let the worker meet the markers that it has not met yet, each in the next of the shards."""
        for raw in commands.everything(TICKETS):
            if raw["sk"]["S"] == stored.MARKER and raw["pk"]["S"] not in self.answered:
                shard = next(self.turns, "")
                if not shard:
                    return
                self.answered[raw["pk"]["S"]] = shard
                data = {"Keys": {n: raw[n] for n in ("pk", "sk")}, "NewImage": raw, "SequenceNumber": "7"}
                handle(batch_of(ARN, shard, [{"eventName": "INSERT", "dynamodb": data}]))


@pytest.fixture
def tree(world: World, monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree = Tree(world.context("alice", "acme"), Shard("a", "", closed=False), Shard("b", "", closed=False))
    monkeypatch.setattr(shards, "arn", lambda table: ARN)
    monkeypatch.setattr(shards, "listing", tree.listing)
    return tree


def wait(tree: Tree) -> None:
    stream_barrier.wait_until_applied(tree.tenant.repository, timeout=0.5, say=tree.work)


def test_it_is_passed_when_each_shard_has_shown_a_marker(tree: Tree) -> None:
    tree.turns = iter("aababb")
    wait(tree)


def test_more_markers_are_written_where_they_have_missed_a_shard(tree: Tree) -> None:
    tree.turns = iter("aaaaaa" + "aab")
    wait(tree)
    assert len(tree.answered) == 9


def test_it_is_not_passed_while_one_shard_is_silent(tree: Tree) -> None:
    tree.turns = iter("aaaaa")
    with pytest.raises(WorkerAway, match="run_stream"):
        wait(tree)


def test_the_children_of_a_split_speak_for_their_parent(tree: Tree) -> None:
    def split(sentence: str) -> None:
        if len(tree.known) == 2:
            tree.known[1] = Shard("b", "", closed=True)
            tree.known += [Shard("b1", "b", closed=False), Shard("b2", "b", closed=False)]
        tree.work(sentence)

    tree.turns = iter(["a", "a", "a", "a", "b2", "a"])
    stream_barrier.wait_until_applied(tree.tenant.repository, timeout=0.5, say=split)


def test_a_shard_that_was_closed_before_needs_its_child_only(tree: Tree) -> None:
    tree.known = [Shard("a", "", closed=True), Shard("a1", "a", closed=False)]
    tree.turns = iter(["a1"])
    wait(tree)
    assert len(tree.answered) == 1, "one shard is open, and one marker tells of it"


def merged(tree: Tree) -> None:
    """Two shards become one, which names a single parent: all markers fall into it."""
    tree.known[:2] = [Shard("a", "", closed=True), Shard("b", "", closed=True)]
    tree.known += [Shard("c", "a", closed=False)]
    tree.turns = iter("cccccc")


def test_a_shard_that_was_merged_into_anothers_child_is_passed_when_it_is_finished(tree: Tree) -> None:
    merged(tree)
    shard = ShardItem(ARN, "b")

    def work(sentence: str) -> None:
        tree.work(sentence)
        if "closed" in sentence:
            positions.finish(shard, position="7")

    stream_barrier.wait_until_applied(tree.tenant.repository, timeout=0.5, say=work)


@pytest.mark.parametrize("lost", [False, True], ids=["not finished", "with a gap"])
def test_a_merged_shard_that_was_not_read_to_its_end_is_not_passed(tree: Tree, lost: bool) -> None:
    merged(tree)
    if lost:
        positions.finish(ShardItem(ARN, "b"), position="7", lost=True)
    with pytest.raises(WorkerAway, match="run_stream"):
        wait(tree)


def test_clocks_that_jump_change_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + timedelta(days=400))
    tree.turns = iter("aaaaaa")
    with pytest.raises(WorkerAway):
        wait(tree)
