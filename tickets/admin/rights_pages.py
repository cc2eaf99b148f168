"""Show operators what each role may do, by table and operation, and what would change without one statement or one of
its conditions; and what the last proof of isolation found."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from portal import clock
from portal.isolation import rights
from portal.isolation.rights import OPERATIONS, WHOLE, Cell, RightChange, RightsPlace, Sentence
from portal.nosql.admin import Notice
from portal.schema import access_patterns, registry
from portal.schema.registry import ROLES, Role
from portal.web.access import costs
from tenants.operators.operator_site import OperatorSite
from tickets.isolation_runs import platform_proofs

# Which processes have a role; docs/isolation.md says more.
_PROCESSES: Final[dict[Role, str]] = {
    "tenant": "what any process does for one tenant, with credentials that carry the tenant's id",
    "platform": "web processes, for what is no tenant's: signing in, operators, members, the audit trail; and commands",
    "worker": "the stream worker and the dispatcher",
    "delivery": "the workers that send mail and webhooks",
    "seed": "seed and import_archive, beside the platform's rights",
    "lifecycle": "run_lifecycle and the commands that move, import or purge a tenant, beside the platform's rights",
}
_WHOSE: Final = {
    "own": "the tenant's own keys",
    "other": "another tenant's keys",
    "none": "no key",
    "bound": "keys of a stated form",
    "free": "keys of any other form",
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
    """Show one role's matrix, `?role=`, and what a missing statement or condition changes, `?without=`; or the rights
    of all roles to one table, `?table=`. One Query, of the last proof."""
    role = next((one for one in ROLES if one == request.GET.get("role", ROLES[0])), None)
    tables = [table.name for table in registry.tables()]
    table = request.GET.get("table", "")
    if role is None or (table and table not in tables):
        raise Http404("There is no such role or table.")
    known = rights.sentences(role)
    sid, _, part = request.GET.get("without", "").partition("/")
    chosen = next((one for one in known if one == Sentence(sid, part)), None) if not table else None
    if sid and not table and chosen is None:
        raise Http404("This role has no such statement.")
    decided = _decided(role, settings.DYNAMODB_TABLE_PREFIX)
    proof = platform_proofs.last()
    rows = [*_rows(role, decided)]
    if table:
        of_roles = [(one, _rows(one, _decided(one, settings.DYNAMODB_TABLE_PREFIX))) for one in ROLES]
        rows = [
            {**row, "name": f"{one}: {row['name']}"}
            for one, found in of_roles
            for row in found
            if row["table"] == table
        ]
    # Operations that the role has nowhere take no column, and places where it has none no row.
    used = {name for row in rows for name, mark in row["cells"] if mark}
    full = [row for row in rows if any(mark for _, mark in row["cells"])]
    for row in full:
        row["cells"] = [(name, mark) for name, mark in row["cells"] if name in used]
    context = {
        **OperatorSite.context_of(request),
        "title": "Rights of roles",
        "roles": [{"name": one, "is_chosen": one == role and not table} for one in ROLES],
        "role": role,
        "processes": _PROCESSES[role],
        "tables": tables,
        "table": table,
        "engine": settings.DYNAMODB_ENDPOINT_URL,
        "operations": [(one, re.findall("[A-Z][a-z]+", one)) for one in OPERATIONS if one in used],
        "nowhere": [one for one in OPERATIONS if one not in used],
        "rows": full,
        "empty": [row["name"] for row in rows if row not in full],
        "beside": [] if table else [_json(one) for one in _beside(role, decided)],
        "sentences": [
            {"value": f"{one.sid}/{one.part}", "words": _words(one), "is_chosen": one == chosen} for one in known
        ],
        "missing": _missing(role, chosen, decided, proof) if chosen else None,
        "proof": _proof(proof) if proof else None,
    }
    return TemplateResponse(request, "tickets/admin/rights.html", context)


def _words(sentence: Sentence) -> str:
    return f"{sentence.sid}: {_ABOUT.get(sentence.part, sentence.part)}"


def _json(statement: Mapping[str, Any]) -> dict[str, str]:
    return {"sid": statement["Sid"], "text": json.dumps(statement, indent=1)}


def _rows(role: Role, decided: Mapping[Cell, tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each place: its statements by numbers, and in each cell whose keys are allowed, and by which."""
    keys, statements = defaultdict[str, list[str]](list), rights.statements(role)
    for shape in access_patterns.shapes():
        of_tenant = shape.partition.startswith("TENANT#") or shape.index
        keys[shape.place].append(shape.name if of_tenant else f"{shape.name} {shape.partition}")
    by_place: dict[RightsPlace, dict[str, dict[str, tuple[str, ...]]]] = {}
    for (place, operation, whose), sids in decided.items():
        by_place.setdefault(place, {}).setdefault(operation, {})[whose] = sids
    for place, found in by_place.items():
        numbered = [
            *dict.fromkeys(sid for by_whose in found.values() for several in by_whose.values() for sid in several)
        ]
        yield {
            "name": place.name,
            "table": place.table.name,
            "keys": ", ".join(keys[place.name.replace(" / ", "/")]),
            "sids": [(n, sid, " ".join(rights.forms_of(statements[sid]))) for n, sid in enumerate(numbered, start=1)],
            "cells": [(one, _mark(place, found.get(one, {}), numbered)) for one in OPERATIONS],
        }


def _mark(place: RightsPlace, by_whose: Mapping[str, tuple[str, ...]], sids: list[str]) -> str:
    """Return whose keys an operation is allowed with, and the numbers of the statements that allow it."""
    allowed = {whose for whose, found in by_whose.items() if found}
    if not allowed:
        return ""
    numbers = sorted({sids.index(sid) + 1 for found in by_whose.values() for sid in found})
    if "own" not in by_whose:
        words = "yes"
    elif allowed & {"none", "free"}:
        words = "any"
    elif not place.has_tenants or allowed == {"bound"}:
        words = "some"
    else:
        words = "own" if allowed == {"own"} else "tenants"
    return f"{words} {','.join(map(str, numbers))}"


def _beside(role: Role, decided: Mapping[Cell, tuple[str, ...]]) -> list[Mapping[str, Any]]:
    """Return the statements that no cell shows: about streams, tables as such, queues and objects."""
    shown = {sid for sids in decided.values() for sid in sids}
    return [statement for sid, statement in rights.statements(role).items() if sid not in shown]


def _missing(role: Role, sentence: Sentence, decided: Mapping[Cell, tuple[str, ...]], proof: Any) -> dict[str, Any]:
    found = rights.changes(role, sentence, decided)
    mutant = rights.mutant_of(role, sentence)
    fates = platform_proofs.mutants_of(proof) if proof and mutant else []
    beside = {one["Sid"] for one in _beside(role, decided)}
    others = {sid for sids in decided.values() if sentence.sid in sids for sid in sids} - {sentence.sid}
    return {
        "words": _words(sentence),
        "statement": _json(rights.statements(role)[sentence.sid]),
        "is_whole": sentence.part == WHOLE,
        "is_beside": sentence.sid in beside,
        "others": sorted(others),
        "allowed": [*_together(one for one in found if one.is_allowed)],
        "refused": [*_together(one for one in found if not one.is_allowed)],
        "mutant": mutant,
        "proof": next((one for one in fates if one.mistake == mutant), None),
    }


def _together(changes: Iterable[RightChange]) -> Iterator[str]:
    """Yield a line for each place, with its operations by the kinds of keys that they are changed for."""
    by_place = defaultdict[str, dict[str, list[str]]](dict)
    for one in changes:
        by_place[one.place.name].setdefault(one.operation, []).append(_WHOSE[one.whose])
    for name, by_operation in sorted(by_place.items()):
        by_keys = defaultdict[str, list[str]](list)
        for operation, whose in by_operation.items():
            by_keys[", ".join(whose)].append(operation)
        yield f"{name}: " + "; ".join(f"{', '.join(several)} with {whose}" for whose, several in by_keys.items())


def _proof(item: Any) -> dict[str, Any]:
    return {
        "when": clock.parse(item.name),
        "verdict": item.verdict,
        "hostile": f"{int(item.hostile):,}",
        "noticed": int(item.noticed),
        "broken": int(item.broken),
        "engine": item.engine,
        "release": item.release,
        "mutants": platform_proofs.mutants_of(item),
    }


@OperatorSite.watches
def isolation_is_unproved() -> list[Notice]:
    """Report that the last proof of isolation failed, or that none was kept: a Query."""
    last = platform_proofs.last()
    if last is not None and last.holds and last.noticed == last.broken:
        return []
    if last is None:
        return [Notice(60, "Isolation was not proved here.", reverse("admin:rights"), "info")]
    said = last.verdict if not last.holds else "The last proof of isolation did not notice each mistake."
    return [Notice(19, said, reverse("admin:rights"), "error")]
