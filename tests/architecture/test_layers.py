"""The architecture, held: who may import whom, who may speak to DynamoDB, who may know of HTTP.

Layers, from the top: entry and edge (HTTP), rules, items, kernel. Features, from the top: tickets, tenants, portal.
Imports inside of functions and under TYPE_CHECKING count like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
FEATURES = ("tickets", "tenants", "portal")  # each imports itself and what follows
# A package of the edge is an edge with all that it holds.
EDGE = {
    "access", "admin", "api", "apps", "audit_views", "auth", "checks", "desk_views", "forms", "handover_views",
    "invite_views", "middleware", "operators", "pages", "request", "session_views", "settings", "stash",
    "templatetags", "urls", "verify_views", "views", "wsgi",
}  # fmt: skip
ENTRY = {"management"}
HTTP = ("django.http", "django.shortcuts", "django.views", "django.middleware", "django.core.handlers", "django_htmx")
AWS = ("pynamodb", "boto3", "botocore", "s3transfer", "aiobotocore")
# What reads a whole table, or runs SQL on one.
WHOLE_TABLE = {"scan", "execute_statement", "batch_execute_statement", "execute_transaction", "rate_limited_scan"}
OPERATIONS = {"Scan", "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"}
# It attacks the walls between tenants, and so names what they must refuse.
ATTACKER = "tickets.proof"


class Use(NamedTuple):
    """Something that a module does in a line."""

    line: int
    what: str


def modules() -> list[Path]:
    return [*(p for f in FEATURES for p in sorted((ROOT / f).rglob("*.py"))), ROOT / "manage.py"]


def name(path: Path) -> str:
    """tickets/desk/views.py gives tickets.desk.views, a package's __init__.py its own name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(tree: ast.AST, module: str, *, is_package: bool = False) -> Iterator[Use]:
    """Every module that is imported, and of `from a import b` both a and a.b, since b may be a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Use(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (Use(node.lineno, found) for a in node.names for found in (base, f"{base}.{a.name}"))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("import_module", "importlib.import_module"):
            yield Use(node.lineno, str(getattr(node.args[0], "value", "")))


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def is_edge(module: str) -> bool:
    return module.split(".")[0] in FEATURES and bool(EDGE & set(module.split(".")[1:]))


def is_entry(module: str) -> bool:
    return bool(ENTRY & set(module.split("."))) or module == "manage"


def is_kernel(module: str) -> bool:
    return within(module, "portal.dynamo", "portal.nosql", "portal.errors")


def is_items(module: str) -> bool:
    return module.endswith(".items")


# --- the rules: each says what is wrong with one import or line, or None ---


def goes_back(module: str, used: str) -> str | None:
    feature, other = module.split(".")[0], used.split(".")[0]
    if feature in FEATURES and other in FEATURES and FEATURES.index(other) < FEATURES.index(feature):
        return f"{feature} imports {used}; imports go {' -> '.join(FEATURES)}"
    return None


def leaves_the_kernel(module: str, used: str) -> str | None:
    if not is_kernel(module) or not within(used, *FEATURES):
        return None
    # Below the kernel there is only time: no settings of a feature, no page, no engine.
    if is_kernel(used) or within(used, "portal.clock") or used == "portal":
        return None
    return f"the kernel imports {used}; it knows portal.dynamo, portal.nosql and portal.errors only"


def speaks_to_aws(module: str, used: str) -> str | None:
    if within(used, *AWS) and not (within(module, "portal.dynamo") or is_items(module)):
        return f"{used} is imported; only portal/dynamo and */items.py know pynamodb, boto3 and botocore"
    return None


def knows_http(module: str, used: str) -> str | None:
    if within(used, *HTTP) and not is_edge(module):
        return f"{used} is imported; only the edge knows of HTTP"
    return None


def climbs_to_the_edge(module: str, used: str) -> str | None:
    if is_edge(used) and not (is_edge(module) or is_entry(module)):
        return f"{used} is imported; rules, items and kernel do not know their callers"
    return None


def does_more_than_items(module: str, used: str) -> str | None:
    if not is_items(module) or within(used, "pynamodb", "portal.dynamo", "__future__", "typing", "datetime"):
        return None
    return None if used == "portal" else f"{used} is imported; items.py holds PynamoDB models and nothing else"


RULES: list[Callable[[str, str], str | None]] = [
    goes_back,
    leaves_the_kernel,
    speaks_to_aws,
    knows_http,
    climbs_to_the_edge,
    does_more_than_items,
]


def reads_a_whole_table(tree: ast.AST) -> Iterator[Use]:
    """Calls of a scan or of PartiQL, by method or by the operation's name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in WHOLE_TABLE:
            yield Use(node.lineno, f".{called}(")
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            value = argument.value if isinstance(argument, ast.Constant) else None
            if value in OPERATIONS or (called == "get_paginator" and value in WHOLE_TABLE):
                yield Use(node.lineno, f"{called}({value!r})")


# --- the modules ---


@pytest.mark.parametrize("path", modules(), ids=name)
def test_a_module_keeps_to_its_layer(path: Path) -> None:
    module = name(path)
    tree = ast.parse(path.read_text())
    found = {
        f"{path.relative_to(ROOT)}:{use.line}: {wrong}"
        for use in imports(tree, module, is_package=path.stem == "__init__")
        for rule in RULES
        if (wrong := rule(module, use.what))
    }
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize("path", [p for p in modules() if not within(name(p), ATTACKER)], ids=name)
def test_a_module_reads_no_whole_table(path: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{use.line}: {use.what}; there is no Scan and no PartiQL"
        for use in reads_a_whole_table(ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)


def test_these_tests_see_the_modules() -> None:
    names = {name(path) for path in modules()}
    assert {
        "portal.schema.keys",
        "portal.nosql.session_store",
        "tenants.tenancy.context",
        "tickets.desk.lifecycle",
        "manage",
    } <= names


# --- the rules themselves ---


def complaints(module: str, source: str) -> list[str]:
    tree = ast.parse(source)
    return [w for use in imports(tree, module) for rule in RULES if (w := rule(module, use.what))]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("portal.web.views", "import tenants.identity.views"),
        ("portal.web.views", "from tickets import queries"),
        ("tenants.membership.members", "from tickets.ticket.fields import Status"),
        ("tenants.membership.members", "def f():\n    from tickets import fields"),
        ("tenants.membership.members", "if TYPE_CHECKING:\n    import tickets"),
        ("tenants.membership.members", "importlib.import_module('tickets.ticket.fields')"),
        ("portal.dynamo.client", "from tenants import items"),
        ("portal.dynamo.client", "from portal.web.middleware import MeterMiddleware"),
        ("portal.dynamo.client", "from portal import engine"),
        ("portal.nosql.session_store", "from portal.web.stash import Stash"),
        ("tickets.desk.lifecycle", "import boto3"),
        ("tickets.desk.lifecycle", "from botocore.exceptions import ClientError"),
        ("tickets.desk.views", "from pynamodb.models import Model"),
        ("portal.nosql.session_store", "import botocore.session"),
        ("tickets.desk.bulk", "from django.http import HttpRequest"),
        ("tickets.desk.bulk", "from django import http"),
        ("portal.dynamo.repository", "import django.shortcuts"),
        ("tickets.ticket.items", "from django.http import HttpResponse"),
        ("tickets.desk.lifecycle", "from tickets import forms"),
        ("tickets.desk.lifecycle", "from portal import pages"),
        ("tenants.membership.members", "from tenants.tenancy.request import TenantRequest"),
        ("tickets.ticket.items", "from tickets import queries"),
        ("tickets.ticket.items", "import time"),
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
        ("tickets.desk.queries", "from portal.dynamo import cursor, keys\nfrom portal.errors import Invalid"),
        ("tickets.desk.queries", "from . import items\nfrom .fields import Status"),
        (
            "portal.dynamo.client",
            "import botocore.session\nfrom portal.dynamo import meter\nfrom portal.errors import Invalid",
        ),
        ("portal.nosql.items", "from pynamodb.attributes import UnicodeAttribute\nfrom portal.dynamo import tables"),
        ("portal.templatetags.portal", "from django.middleware.csrf import get_token"),
        ("tickets.management.commands.seed", "from tickets import lifecycle\nfrom tenants import accounts"),
        ("portal.settings", "import environ"),
    ],
)
def test_the_rules_let_pass_what_is_right(module: str, source: str) -> None:
    assert complaints(module, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "TenantItem.scan()",
        "client.scan(TableName='x')",
        "connection.dispatch('Scan', {})",
        "connection.call(operation='ExecuteStatement')",
        "client.get_paginator('scan')",
        "client.execute_statement(Statement='SELECT 1')",
        "client.batch_execute_statement(Statements=[])",
    ],
)
def test_a_scan_is_seen_however_it_is_called(source: str) -> None:
    assert [*reads_a_whole_table(ast.parse(source))]


def test_naming_a_scan_to_refuse_it_is_no_scan() -> None:
    source = (
        "REFUSED = {'Scan', 'ExecuteStatement'}\nif operation == 'Scan':\n    raise ValueError(f'{operation} refused')"
    )
    assert [*reads_a_whole_table(ast.parse(source))] == []
