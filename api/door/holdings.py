"""Declare the answers that are kept for repeated requests."""

from __future__ import annotations

from collections.abc import Iterator

from api.door.tables import ANSWERS, ANSWERS_BY_TENANT
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding


def _answers(reader: Reader) -> Iterator[StoredItem]:
    for place in reader.places:  # answers about webhooks are written in the pool
        named = place.query(ANSWERS, reader.tenant_id, index=ANSWERS_BY_TENANT)
        yield from place.get(ANSWERS, *((one.item["pk"]["S"], None) for one in named))


declare_holding(
    Holding("answers", (ANSWERS,), _answers, Stage.BESIDE, left_out="each is forgotten a day after its request")
)
