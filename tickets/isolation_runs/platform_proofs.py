"""Keep the results of the platform's own proofs: of all tenants, with layers that are broken on purpose.

They are made where the proofs are, which the image has not: `prove_isolation` keeps its own result, and
`record_proof` takes the file that it has written elsewhere.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from portal.dynamo.platform import PLATFORM
from portal.errors import Invalid
from tickets.isolation_runs import stored
from tickets.isolation_runs.stored import PlatformProofItem


class NoticedMutant(NamedTuple):
    """A layer that was broken on purpose: how, by what kind of attempt that was noticed, "" for not at all, and after
    how many attempts."""

    mistake: str
    noticed_by: str
    attempts: int


_MOST: Final = 2_000  # broken layers of one report, so that an item has room


def record(found: Mapping[str, Any]) -> PlatformProofItem:
    """Keep a report as `prove_isolation --json` writes it: one PutItem. The same report again changes nothing.

    Raises Invalid for anything else, and for a proof that broke no layer.
    """
    try:
        broken = [one for one in found["mutants"] if not one["control"]]
        mutants = [[str(o["mistake"]), str(o["killed_by"]), int(o["attempts"])] for o in broken][:_MOST]
        versions, requests = found["versions"], found["requests"]
        item = PlatformProofItem(
            stored.PROOFS,
            str(found["began"]),
            verdict=str(found["verdict"]),
            holds=int(found["holds"]),
            hostile=int(requests["hostile"]),
            honest=int(requests["honest"]),
            tenants=int(found["tenants"]),
            noticed=sum(bool(one["as_expected"]) for one in broken),
            broken=len(broken),
            mutants=zlib.compress(json.dumps(mutants).encode(), 9),
            engine=str(versions["engine"]),
            release=str(versions["Pooldesk"]),
            policy=str(found["policy_sha256"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid("This is no report of prove_isolation, as --json writes it.") from error
    if not mutants:
        raise Invalid("This proof ended before any layer was broken, so there is nothing to keep.")
    PLATFORM.put(item)
    return item


def last(*, before: str = "~") -> PlatformProofItem | None:
    """Return the newest result, or that of before a stamp, None where there is none: one Query."""
    ends = ("0", before)
    found = PLATFORM.query(PlatformProofItem, stored.PROOFS, between=ends, descending=True, limit=1)
    return next(iter(found.items), None)


def mutants_of(item: PlatformProofItem) -> list[NoticedMutant]:
    return [NoticedMutant(*one) for one in json.loads(zlib.decompress(bytes(item.mutants)))]
