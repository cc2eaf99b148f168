"""Show operators what each role may do, by table and operation, and what would change without one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, get_args

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from portal.isolation import rights
from portal.isolation.rights import OPERATIONS, WHOLE, Cell, RightChange, RightsPlace, Sentence
from portal.schema.registry import ROLES, Role
from portal.web.costs import costs
from tenants.operators.operator_site import OperatorSite
from tickets.isolation_runs import platform_proofs

_WHOSE: Final = {
    "own": "with its own key",
    "other": "with another tenant's key",
    "none": "without a key",
    "bound": "with keys of a stated form",
}
_ABOUT: Final = {
    WHOLE: "the statement",
    "Null": "its condition that a request names a key",
    "ForAllValues:StringEquals": "its condition on whose keys a request names",
    "ForAllValues:StringLike": "its condition on whose keys a request names",
}


@lru_cache(maxsize=16)
def _decided(role: Role, prefix: str) -> Mapping[Cell, tuple[str, ...]]:
    """Return what is decided about a role, once in a process: tables are named as the settings say."""
    return rights.decided(role)


@OperatorSite.page("rights/", name="rights", title="Rights of roles")
@costs(query="isolation proof", trips=1, reads=5)
def rights_of_roles(request: HttpRequest) -> HttpResponse:
    """Show one role's matrix, and what a missing sentence changes: a Query where a proof breaks the policy so."""
    asked = request.GET.get("role", "")
    role: Role = next((one for one in get_args(Role) if one == asked), ROLES[0])
    known = rights.sentences(role)
    sid, _, part = request.GET.get("without", "").partition("/")
    chosen = next((one for one in known if one == Sentence(sid, part)), None)
    decided = _decided(role, settings.DYNAMODB_TABLE_PREFIX)
    rows = [*_rows(decided)]
    # Operations that the role has nowhere take no column.
    used = {name for row in rows for name, mark in row["cells"] if mark}
    for row in rows:
        row["cells"] = [(name, mark) for name, mark in row["cells"] if name in used]
    context = {
        **OperatorSite.context_of(request),
        "title": "Rights of roles",
        "roles": [{"name": one, "is_chosen": one == role} for one in ROLES],
        "role": role,
        "operations": [(one, re.findall("[A-Z][a-z]+", one)) for one in OPERATIONS if one in used],
        "rows": rows,
        "sentences": [
            {"value": f"{one.sid}/{one.part}", "words": _words(one), "is_chosen": one == chosen} for one in known
        ],
        "missing": _missing(role, chosen, decided) if chosen else None,
    }
    return TemplateResponse(request, "tickets/admin/rights.html", context)


def _words(sentence: Sentence) -> str:
    return f"{sentence.sid}: {_ABOUT.get(sentence.part, sentence.part)}"


def _rows(decided: Mapping[Cell, tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each place: its statements by numbers, and in each cell whose keys are allowed, and by which."""
    by_place: dict[RightsPlace, dict[str, dict[str, tuple[str, ...]]]] = {}
    for (place, operation, whose), sids in decided.items():
        by_place.setdefault(place, {}).setdefault(operation, {})[whose] = sids
    for place, found in by_place.items():
        numbered = [
            *dict.fromkeys(sid for by_whose in found.values() for several in by_whose.values() for sid in several)
        ]
        yield {
            "name": place.name,
            "sids": [*enumerate(numbered, start=1)],
            "cells": [(one, _mark(place, found.get(one, {}), numbered)) for one in OPERATIONS],
        }


def _mark(place: RightsPlace, by_whose: Mapping[str, tuple[str, ...]], sids: list[str]) -> str:
    """Return whose keys an operation is allowed with, and the numbers of the statements that allow it."""
    allowed = [whose for whose, found in by_whose.items() if found]
    if not allowed:
        return ""
    numbers = sorted({sids.index(sid) + 1 for found in by_whose.values() for sid in found})
    has_tenants = place.table.scope == "tenant" and "own" in by_whose
    words = ("own" if allowed == ["own"] else "any tenant's") if has_tenants else "yes"
    if allowed == ["bound"]:
        words = "some keys"
    return f"{words} {','.join(map(str, numbers))}"


def _missing(role: Role, sentence: Sentence, decided: Mapping[Cell, tuple[str, ...]]) -> dict[str, Any]:
    found = rights.changes(role, sentence, decided)
    mutant, proof = rights.mutant_of(role, sentence), None
    if mutant:
        last = platform_proofs.last()
        fates = platform_proofs.mutants_of(last) if last else []
        proof = next((one for one in fates if one.mistake == mutant), None)
    return {
        "words": _words(sentence),
        "allowed": [*_together(one for one in found if one.is_allowed)],
        "refused": [*_together(one for one in found if not one.is_allowed)],
        "mutant": mutant,
        "proof": proof,
    }


def _together(changes: Iterator[RightChange]) -> Iterator[str]:
    """Yield a line for each place and kind of key, with its operations."""
    ordered = sorted(changes, key=lambda one: (one.place.name, one.whose))
    for (name, whose), several in groupby(ordered, key=lambda one: (one.place.name, one.whose)):
        yield f"{name}, {_WHOSE[whose]}: {', '.join(one.operation for one in several)}"
