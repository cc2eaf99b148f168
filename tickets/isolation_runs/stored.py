"""Declare isolation runs, their signed files, and the results of the platform's own proofs, all in the directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.stored import JobItem, jobs, past

RUNS: Final = keys.part("ISOLATION_RUN")  # the last run of each desk
FORMER_RUNS: Final = "ISOLATION_RUNS"  # kind of the runs in a desk's history
FILES: Final = "ISOLATION_FILES"  # kind of their signed files
PROOFS: Final = keys.part("ISOLATION_PROOF")  # results of the platform's own proofs, by when they began


class IsolationRunItem(JobItem):
    """One run: the last one of its desk, or one in the history.

    `state` is running, cancelling, cancelled, held, crossed or refused. `attacker` is the id that the attempts are made
    for. `plan` is a digest of the kinds of keys and of the tricks: `answers` has one letter for each attempt that was
    made of it, `filled` one digit for each kind of key, 1 where the desk has such keys. `tally` is JSON: how many
    attempts each layer refused. Of the desk's own requests `own_asked` were sent and `own_answered` answered. `day` and
    `of_day` count the runs of a day. `file` is the SHA-256 of the signed file, "" where none was signed.
    """

    run_id = UnicodeAttribute()
    by_id = UnicodeAttribute()
    by_email = UnicodeAttribute()
    by_origin = UnicodeAttribute(default="")
    attacker = UnicodeAttribute()
    plan = UnicodeAttribute(default="")
    answers = UnicodeAttribute(default="")
    filled = UnicodeAttribute(default="")
    tally = UnicodeAttribute(default="{}")
    tried = NumberAttribute(default=0)
    total = NumberAttribute(default=0)
    own_asked = NumberAttribute(default=0)
    own_answered = NumberAttribute(default=0)
    engine = UnicodeAttribute(default="")
    release = UnicodeAttribute(default="")
    ended_at = UnicodeAttribute(default="")
    file = UnicodeAttribute(default="")
    day = UnicodeAttribute(default="")
    of_day = NumberAttribute(default=0)


class IsolationFileItem(Item):
    """The signed page of a run, by when the run began. `content` is compressed by zlib."""

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    content = BinaryAttribute(legacy_encoding=False, null=True)


class PlatformProofItem(Item):
    """The result of one proof of the whole platform. `mutants` is JSON, compressed by zlib: each broken layer, by what
    kind of attempt it was noticed, and after how many. `noticed` of `broken` layers were noticed."""

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    verdict = UnicodeAttribute()
    holds = NumberAttribute()
    hostile = NumberAttribute()
    honest = NumberAttribute()
    tenants = NumberAttribute()
    noticed = NumberAttribute()
    broken = NumberAttribute()
    mutants = BinaryAttribute(legacy_encoding=False)
    engine = UnicodeAttribute()
    release = UnicodeAttribute()
    policy = UnicodeAttribute()


_A_RECORD = "it tells how this installation refused an attack, and says nothing of another one"


def _files(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(DIRECTORY, past(FILES, reader.tenant_id))


declare_holding(
    jobs("isolation runs", RUNS, Stage.CONTENT, history=FORMER_RUNS, left_out=_A_RECORD),
    Holding("files of isolation runs", (DIRECTORY,), _files, Stage.CONTENT, left_out=_A_RECORD),
)


declare_keys(
    DIRECTORY,
    {
        "isolation run": "ISOLATION_RUN, <tenant>",
        "past isolation run": "ISOLATION_RUNS#<tenant>, <time>",
        "file of an isolation run": "ISOLATION_FILES#<tenant>, <time>",
        "isolation proof": "ISOLATION_PROOF, <time>",
    },
)
