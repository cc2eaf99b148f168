"""The search is one room: without it the rest stands, but for the few lines that name it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from django.conf import settings

from tests.architecture.test_layers import imports, modules, name, within

ROOT = Path(settings.BASE_DIR)
# For development, and for the attacks on it.
INSTRUMENTS = ("proofs", "benchmarks")
NAME_IT = {
    "api.v1.ticket_routes",
    "api.v1.ticket_schemas",
    "tickets.admin.search_pages",
    "tickets.following.ticket_stream",
    "tickets.management.commands.rebuild_search",
    "tickets.management.commands.search",
    "tickets.management.commands.verify_search",
    "tickets.urls",
}
SHOW_IT = {
    "templates/portal/_header.html": "search/_box.html",
    "templates/portal/_help.html": "tickets:search",
    "templates/tickets/queue.html": "search/_scope.html",
}


def test_few_modules_outside_of_the_room_name_it() -> None:
    naming = {
        name(path)
        for path in modules()
        if not within(name(path), "tickets.search", *INSTRUMENTS)
        for use in imports(ast.walk(ast.parse(path.read_text())), name(path), is_package=path.stem == "__init__")
        if within(use.what, "tickets.search")
    }
    assert naming == NAME_IT


def test_few_templates_outside_of_its_folder_show_it() -> None:
    pattern = re.compile(r"""["'](search/[\w.]+|tickets:(?:search|suggest))["']""")
    showing = {
        str(path.relative_to(ROOT)): match[1]
        for path in (ROOT / "templates").rglob("*.html")
        if path.parent.name != "search"
        if (match := pattern.search(path.read_text()))
    }
    assert showing == SHOW_IT
