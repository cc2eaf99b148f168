"""The texts of the demonstration, from the two TOML files beside this module, and how a text's slots are filled."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

By = Literal["agent", "customer", "note"]


@dataclass(frozen=True)
class Turn:
    """One contribution to a conversation; `says` has one text for each way that the scenario may go."""

    by: By
    says: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """One kind of ticket. It goes one of two ways; titles, description and turns of one way belong together."""

    tags: tuple[str, ...]
    urgency: int  # 0, a wish, to 3, an outage
    titles: tuple[str, ...]
    descriptions: tuple[str, ...]
    talk: tuple[Turn, ...]


@dataclass(frozen=True)
class Words:
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    customers: tuple[str, ...]
    companies: tuple[str, ...]
    relapses: tuple[str, ...]
    remedies: tuple[str, ...]
    products: Mapping[str, str]
    slots: Mapping[str, tuple[str, ...]]


@cache
def scenarios() -> tuple[Scenario, ...]:
    return tuple(
        Scenario(
            tags=tuple(raw["tags"]),
            urgency=raw["urgency"],
            titles=tuple(raw["titles"]),
            descriptions=tuple(raw["descriptions"]),
            talk=tuple(Turn(turn["by"], tuple(turn["says"])) for turn in raw["talk"]),
        )
        for raw in _load("scenarios.toml")["scenario"]
    )


@cache
def words() -> Words:
    raw = _load("words.toml")
    slots = {name: tuple(values) for name, values in raw.pop("slots").items()}
    products = raw.pop("products")
    return Words(products=products, slots=slots, **{name: tuple(values) for name, values in raw.items()})


def made_id(*parts: object) -> str:
    """Return 32 hex digits that follow from the parts: an id that the same seed makes again."""
    return hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
