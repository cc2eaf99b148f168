"""Judge an order of tickets against what people have judged before: NDCG, the normalised discounted gain.

Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002, with the gain 2^grade - 1 of
Burges et al., 2005.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

SHOWN: Final = 10  # of an answer are judged
_GRADES: Final = (1, 2, 3)


@dataclass(frozen=True)
class JudgedQuery:
    """Hold a query and the grade of each row of the archive that is relevant to it, 3 for the most."""

    query: str
    grades: Mapping[int, int]


def read_judgments(path: Path) -> list[JudgedQuery]:
    """Read a file of judgments: for each query the numbers of the rows, as the archive counts them, by grade."""
    return [
        JudgedQuery(row["query"], {number: grade for grade in _GRADES for number in row[str(grade)]})
        for row in json.loads(path.read_text())["queries"]
    ]


def ndcg(answer: Sequence[int], grades: Mapping[int, int], *, shown: int = SHOWN) -> float:
    """Return between 0 and 1 how good the first of an answer are: 1 where none could be better."""
    best = sorted(grades.values(), reverse=True)[:shown]
    return _gain(grades.get(number, 0) for number in answer[:shown]) / _gain(best) if best else 0.0


def mean_ndcg(judged: Iterable[JudgedQuery], answer: Callable[[str], Sequence[int]]) -> float:
    """Return the mean over all queries; `answer` gives rows of the archive, the best first."""
    return mean(ndcg(answer(one.query), one.grades) for one in judged)


def mean(values: Iterable[float]) -> float:
    """Return the mean; 0 of nothing."""
    some = list(values)
    return fmean(some) if some else 0.0


def _gain(grades: Iterable[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))
