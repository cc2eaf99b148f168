"""Which declared pattern serves what is asked: every filter, order and prefix, or a refusal that says what is served.

Nothing is read here. What is left over after the key conditions is asked of the rows that are read (`reading.py`), for
fields that the facade allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import FieldError

from portal.nosql.planner.patterns import SEPARATOR, Get, Listing, Lookup, Pattern, Query


class Unplannable(FieldError):
    """No declared pattern serves this. The text is a sentence for a person, and says what is served.

    `incomplete`: nothing is wrong with what was asked, but it does not name a partition yet.
    """

    def __init__(self, sentence: str, *, incomplete: bool = False) -> None:
        super().__init__(sentence)
        self.incomplete = incomplete


@dataclass(frozen=True)
class Asked:
    """What a query set has been narrowed to. `prefix` is a field and what it begins with, `ids` are of `pk__in`.

    `order` is a field, with a minus for the other way round. `limit` is None for all of them, up to a bound.
    """

    model: Any
    exact: dict[str, Any] = field(default_factory=dict)
    prefix: tuple[str, str] | None = None
    ids: tuple[str, ...] | None = None
    order: str = ""
    limit: int | None = None
    cursor: str = ""
    nothing: bool = False


@dataclass(frozen=True)
class Plan:
    """One pattern, what its partition is made of, and what is left over for the rows."""

    pattern: Pattern
    values: dict[str, Any]
    leftover: dict[str, Any]


def plan(asked: Asked) -> Plan:
    """The declared pattern that serves this, the most specific one. Raises Unplannable."""
    return _point(asked) or _list(asked)


def get_of(model: Any) -> Get:
    """The pattern by which one object is read."""
    return next(pattern for pattern in model.patterns if isinstance(pattern, Get))


def _point(asked: Asked) -> Plan | None:
    """By another unique value, by the pk, or by all of the fields that it is made of."""
    if asked.prefix is not None:
        return None
    model, exact = asked.model, asked.exact
    for pattern in model.patterns:
        if isinstance(pattern, Lookup) and pattern.field in exact:
            return _of(asked, pattern, (pattern.field,))
        if isinstance(pattern, Get):
            if model._meta.pk.name in exact:
                return _of(asked, pattern, (model._meta.pk.name,))
            if set(pattern.fields) <= set(exact):
                return _of(asked, pattern, pattern.fields)
    return None


def _list(asked: Asked) -> Plan:
    """By the pattern that takes the most of the fields, sorts as asked, and searches if asked to."""
    model, order, prefix = asked.model, asked.order.lstrip("-"), asked.prefix
    lists = [p for p in model.patterns if isinstance(p, Query | Listing) and set(p.by) <= set(asked.exact)]
    sorting = [p for p in lists if order in ("", p.order)]
    fitting = [p for p in sorting if not prefix or (p.prefix and p.order == prefix[0])]
    if not fitting:
        raise Unplannable(_refusal(asked, lists, sorting), incomplete=not lists)
    best = max(fitting, key=lambda p: len(p.by))
    found = _of(asked, best, (*best.by, *(best.may if isinstance(best, Listing) else ())))
    strange = [name for name in found.leftover if name not in model.filters or isinstance(best, Listing)]
    if strange:
        label = str(model._meta.get_field(strange[0]).verbose_name)
        raise Unplannable(f"{plural(model)} cannot be filtered by {label} here. {served(model)}")
    return found


def _of(asked: Asked, pattern: Pattern, taken: tuple[str, ...]) -> Plan:
    values = {name: value for name, value in asked.exact.items() if name in taken}
    return Plan(pattern, values, {name: v for name, v in asked.exact.items() if name not in taken})


def joined(pattern: Get, values: dict[str, Any]) -> str:
    """The pk that is made of these values."""
    return SEPARATOR.join(str(values[name]) for name in pattern.fields)


# --- sentences ---


def served(model: Any) -> str:
    """One sentence about what the patterns of a facade serve."""
    lists = [p.name for p in model.patterns if isinstance(p, Query | Listing)]
    points = [p.name for p in model.patterns if isinstance(p, Lookup | Get)]
    if not lists:
        return f"{plural(model)} can be found {_either(points)}."
    named = [name for name in points if name != Get.name]  # that one id finds one object goes without saying
    found = f", or found {_either(named)}" if named else ""
    choose = " Choose one." if len(lists) > 1 else ""
    return f"{plural(model)} can be listed {_either(lists)}{found}.{choose}"


def plural(model: Any) -> str:
    """What many of them are called, at the beginning of a sentence."""
    name = str(model._meta.verbose_name_plural)
    return name[:1].upper() + name[1:]


def _refusal(asked: Asked, lists: list[Any], sorting: list[Any]) -> str:
    model = asked.model
    if not lists or not asked.order:
        return served(model)
    if not sorting:
        names = sorted({str(model._meta.get_field(p.order).verbose_name) for p in lists})
        return f"{plural(model)} are sorted by {_either(names)}, and by nothing else."
    return f"{plural(model)} cannot be searched by what they begin with here. {served(model)}"


def _either(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
