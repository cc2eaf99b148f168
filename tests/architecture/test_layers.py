"""Check imports: layers, access to AWS, and use of HTTP.

`layers.txt` lists the layers. Imports inside of functions and under TYPE_CHECKING count like any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings

from tests.support.sources import mentions, reading, statements, tree

ROOT = Path(settings.BASE_DIR)
PICTURE = Path(__file__).with_name("layers.txt")
HTTP = (
    "django.http",
    "django.shortcuts",
    "django.urls",
    "django.views",
    "django.template",
    "jinja2",
    "django.middleware",
    "django.core.handlers",
    "django_htmx",
)
AWS = ("pynamodb", "boto3", "botocore", "s3transfer", "aiobotocore")
SPEAK_TO_AWS = (
    *(
        "portal.aws_session",
        "portal.dynamo",
        "portal.hosting",
        "portal.isolation",
        "portal.mailing",
        "portal.objects",
        "portal.queueing",
        "portal.streams",
    ),
)
# Modules that a file of models may import besides the kernel's item and its package's tables.
OF_ITEMS = ("pynamodb", "portal.dynamo", "__future__", "typing", "datetime")
# Methods that read a whole table, or run PartiQL.
WHOLE_TABLE = {"scan", "execute_statement", "batch_execute_statement", "execute_transaction", "rate_limited_scan"}
OPERATIONS = {"Scan", "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"}
# This package attacks the isolation of tenants, and so names forbidden operations.
ATTACKER = "proofs.isolation"


class Picture(NamedTuple):
    """Holds each name of layers.txt with the number of its line, and the names of edge modules."""

    lines: dict[str, int]
    edge: frozenset[str]


class Use(NamedTuple):
    """Something that a module does in a line."""

    line: int
    what: str


@pytest.fixture(scope="module", autouse=True)
def only_while_they_are_read() -> Iterator[None]:
    with reading():
        yield


@cache
def picture() -> Picture:
    lines: dict[str, int] = {}
    edge: frozenset[str] = frozenset()
    for number, line in enumerate(PICTURE.read_text().splitlines()):
        if line.startswith("edge:"):
            edge = frozenset(line.split()[1:])
        elif not line.startswith("#"):
            lines |= dict.fromkeys(line.split(), number)
    return Picture(lines, edge)


def apps() -> set[str]:
    return {name.split(".")[0] for name in picture().lines}


@cache
def modules() -> list[Path]:
    return [*(p for app in sorted(apps()) for p in sorted((ROOT / app).rglob("*.py"))), ROOT / "manage.py"]


@cache
def name(path: Path) -> str:
    """tickets/desk/views.py gives tickets.desk.views, a package's __init__.py its own name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def names() -> frozenset[str]:
    return frozenset(map(name, modules()))


@cache
def layer_of(module: str) -> str | None:
    """Return the longest name in layers.txt that contains a module, or None."""
    parts = module.split(".")
    ways = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((way for way in ways if way in picture().lines), None)


@cache
def is_edge(module: str) -> bool:
    parts = module.split(".")
    endings = ("_views", "_presenters", "_admin", "_middleware")
    return parts[0] in apps() and any(part in picture().edge or part.endswith(endings) for part in parts[1:])


@cache
def is_entry(module: str) -> bool:
    return "management" in module.split(".") or module == "manage" or module.split(".")[0] in ("proofs", "benchmarks")


def is_items(module: str) -> bool:
    return module.endswith((".items", ".stored"))


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@cache
def uses(path: Path) -> tuple[Use, ...]:
    """Return the imports of a module. Expressions are read only where import_module is called."""
    nodes = ast.walk(tree(path)) if mentions(path, "import_module") else statements(path)
    return tuple(imports(nodes, name(path), is_package=path.stem == "__init__"))


def imports(nodes_of: Iterable[ast.AST], module: str, *, is_package: bool = False) -> Iterator[Use]:
    """Yield each imported module; of `from a import b` both a and a.b, since b may be a module."""
    for node in nodes_of:
        if isinstance(node, ast.Import):
            yield from (Use(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (Use(node.lineno, used) for a in node.names for used in (base, f"{base}.{a.name}"))
        elif isinstance(node, ast.Call) and called(node) == "import_module":
            yield Use(node.lineno, str(getattr(node.args[0], "value", "")))


def called(node: ast.Call) -> str:
    """Return the last name of the called function."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


# --- the rules: each returns a complaint about one import, or None ---


def climbs(module: str, used: str) -> str | None:
    layer, other = layer_of(module), layer_of(used)
    if layer is None or other is None or layer == other:
        return None
    lines = picture().lines
    same_app = layer.split(".")[0] == other.split(".")[0]
    if same_app and is_edge(module):
        return None
    if lines[other] <= lines[layer]:
        return f"{layer} imports {used}; in layers.txt {other} is not below it"
    return None


def stands_nowhere(module: str, used: str) -> str | None:
    if module.count(".") and layer_of(module) is None:
        return f"{module} is in no package of layers.txt"
    return None


def speaks_to_aws(module: str, used: str) -> str | None:
    may = (*SPEAK_TO_AWS, "benchmarks", "examples.first_table", "examples.outbox")
    if within(used, *AWS) and not (within(module, *may) or is_items(module)):
        return f"{used} is imported; only {', '.join(SPEAK_TO_AWS)} and */stored.py know pynamodb, boto3 and botocore"
    return None


def knows_http(module: str, used: str) -> str | None:
    if within(used, *HTTP) and not (is_edge(module) or is_entry(module)):
        return f"{used} is imported; only the edge knows of HTTP, addresses and templates"
    return None


def imports_the_edge(module: str, used: str) -> str | None:
    if is_edge(used) and not (is_edge(module) or is_entry(module)):
        return f"{used} is imported; rules, items and kernel do not know their callers"
    return None


def does_more_than_items(module: str, used: str) -> str | None:
    if (
        not module.endswith(".items")
        or within(used, *OF_ITEMS)
        or any(f".{kind}." in f"{used}." for kind in ("tables", "items", "stored"))
    ):
        return None
    inside = any(within(known, used) for known in names())  # a package on the way to a module that is allowed
    return None if inside and not used.count(".") > 1 else f"{used} is imported; items.py holds PynamoDB models only"


RULES: list[Callable[[str, str], str | None]] = [
    climbs,
    stands_nowhere,
    speaks_to_aws,
    knows_http,
    imports_the_edge,
    does_more_than_items,
]


def reads_a_whole_table(nodes_of: Iterable[ast.AST]) -> Iterator[Use]:
    """Yield calls of Scan or PartiQL, by method or by the operation's name."""
    for node in nodes_of:
        if not isinstance(node, ast.Call):
            continue
        method = called(node)
        if method in WHOLE_TABLE:
            yield Use(node.lineno, f".{method}(")
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            value = argument.value if isinstance(argument, ast.Constant) else None
            if value in OPERATIONS or (method == "get_paginator" and value in WHOLE_TABLE):
                yield Use(node.lineno, f"{method}({value!r})")


# --- the modules ---


def test_every_module_keeps_to_its_layer() -> None:
    wrong = {
        f"{path.relative_to(ROOT)}:{use.line}: {complaint}"
        for path in modules()
        for use in uses(path)
        for rule in RULES
        if (complaint := rule(name(path), use.what))
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_no_module_reads_a_whole_table() -> None:
    reads = [
        f"{path.relative_to(ROOT)}:{use.line}: {use.what}; there is no Scan and no PartiQL"
        for path in modules()
        if not within(name(path), ATTACKER) and mentions(path, *WHOLE_TABLE, *OPERATIONS)
        for use in reads_a_whole_table(ast.walk(tree(path)))
    ]
    assert not reads, "\n".join(reads)


def test_every_package_of_the_layers_exists() -> None:
    assert {layer for layer in picture().lines if layer not in names()} == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {
        name(path): {use.what for use in uses(path) if use.what in names() and use.what != name(path)}
        for path in modules()
        if path.stem != "__init__"
    }
    assert circle(graph) == []


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle, or none."""
    finished: set[str] = set()

    def visit(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module in finished:
            return []
        for used in sorted(graph.get(module, ())):
            if round_trip := visit(used, [*way, module]):
                return round_trip
        finished.add(module)
        return []

    return next((c for module in sorted(graph) if (c := visit(module, []))), [])


# --- the rules themselves ---


def complaints(module: str, source: str) -> list[str]:
    return [
        c for use in imports(ast.walk(ast.parse(source)), module) for rule in RULES if (c := rule(module, use.what))
    ]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("portal.web.views", "import tenants.sign_in.views"),
        ("tenants.membership.members", "from tickets.ticket.fields import Status"),
        ("tenants.membership.members", "def f():\n    from tickets.ticket import fields"),
        ("tenants.membership.members", "if TYPE_CHECKING:\n    import tickets.ticket"),
        ("tenants.membership.members", "importlib.import_module('tickets.ticket.fields')"),
        ("tenants.sign_in.accounts", "from tenants.membership import members"),
        ("portal.dynamo.client", "from portal import engines"),
        ("portal.isolation.guard", "from portal.dynamo import client"),
        ("portal.newpackage.rule", "import json"),
        ("tickets.desk.bulk", "import boto3"),
        ("tickets.desk.views", "from pynamodb.models import Model"),
        ("tickets.desk.bulk", "from django.urls import reverse"),
        ("tickets.desk.bulk", "from django import http"),
        ("tickets.desk.bulk", "from tickets.desk import forms"),
        ("tickets.newpackage.items", "from tickets.ticket import fields"),
        ("tickets.newpackage.items", "import time"),
    ],
)
def test_the_rules_know_what_is_wrong(module: str, source: str) -> None:
    assert complaints(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "tickets.desk.views",
            "from tenants.tenancy.request import TenantRequest\nfrom django.http import HttpResponse",
        ),
        ("tenants.audit_trail.views", "from tenants.tenancy import context"),
        ("tickets.desk.presenters", "from django.urls import reverse"),
        ("tickets.desk.bulk", "from portal.dynamo import cursor\nfrom portal.errors import Invalid"),
        (
            "tickets.ticket.stored",
            "from pynamodb.attributes import UnicodeAttribute\nfrom tickets.ticket.stored import T",
        ),
        ("tickets.management.commands.seed", "from tickets.desk import bulk\nfrom tenants.sign_in import accounts"),
    ],
)
def test_the_rules_let_pass_what_is_right(module: str, source: str) -> None:
    assert complaints(module, source) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize(
    "source",
    [
        "TenantItem.scan()",
        "client.scan(TableName='x')",
        "connection.dispatch('Scan', {})",
        "connection.call(operation='ExecuteStatement')",
        "client.get_paginator('scan')",
        "client.execute_statement(Statement='SELECT 1')",
    ],
)
def test_a_scan_is_seen_however_it_is_called(source: str) -> None:
    assert [*reads_a_whole_table(ast.walk(ast.parse(source)))]


def test_naming_a_scan_to_refuse_it_is_no_scan() -> None:
    source = "REFUSED = {'Scan', 'ExecuteStatement'}\nif operation == 'Scan':\n    raise ValueError(operation)"
    assert [*reads_a_whole_table(ast.walk(ast.parse(source)))] == []


# --- reads without a model ---

RAW_BY_NATURE = ("portal.dynamo", "portal.streams.worker", "proofs", "benchmarks")


def reads_raw_items(path: Path) -> bool:
    """Return True if a module reads raw items, beside holdings, which copy items of every kind."""
    return mentions(path, "RawItems") and not within(name(path), *RAW_BY_NATURE) and not mentions(path, "Holding")


def test_each_module_that_reads_raw_items_is_listed() -> None:
    page = (ROOT / "docs/adr/0038-where-reads-give-raw-items.md").read_text()
    rows = (line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    listed = [module for row in rows for module in re.findall(r"`([\w.]+)`", row)]
    assert sorted(listed) == sorted(name(path) for path in modules() if reads_raw_items(path))
