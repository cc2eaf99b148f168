"""The search can be taken out: few know it, and what they know is where it is joined on."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
APPS = ("portal", "tenants", "delivery", "tickets", "api", "proofs", "benchmarks")
NAMED = re.compile(r"\btickets\.search\b")
JOINED_ON = {
    "tickets/following",  # the stream
    "tickets/urls.py",  # its pages
    "tickets/admin",  # those of operators
    "tickets/management",  # its commands
    "proofs",
    "benchmarks",
}


def test_the_search_is_known_only_where_it_is_joined_on() -> None:
    modules = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    naming = {str(path.relative_to(ROOT)) for path in modules if NAMED.search(path.read_text())}
    outside = {name for name in naming if not name.startswith("tickets/search/")}
    assert "tickets/following/ticket_stream.py" in outside
    assert {name for name in outside if not name.startswith(tuple(JOINED_ON))} == set()
