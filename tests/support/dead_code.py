"""Find code that nothing uses: `python -m tests.support.dead_code`, a part of `make lint`.

vulture reads Python only, so names in templates, and in dotted paths such as those of settings.py, count as used here.
It looks at functions, methods, properties, classes and constants; most other variables are options that Django reads.
What a framework calls by its name stands in `dead_code_allowed.txt`, a pattern a line. Tests use nothing: what only
they call is dead.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["manage.py", "portal", "tenants", "delivery", "tickets", "api", "proofs", "benchmarks", "examples"]
ALLOWED = Path(__file__).with_name("dead_code_allowed.txt")
KINDS = {"function", "method", "property", "class", "import"}
DECORATORS = [
    "@register.*",
    "@admin.*",
    "@_check",
    "@_in_production",
    "@receiver",
    "@OperatorSite.watches*",
    "@OperatorSite.page*",
    "@router.declare*",
    "@model_validator",
]
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
DOTTED_PATH = re.compile(r'"(?:python:)?[a-z_]+(?:\.\w+)+"')


def unused() -> list[str]:
    """Return a line with file, line number and name for each of them."""
    patterns = [line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    vulture = Vulture(ignore_names=patterns, ignore_decorators=DECORATORS)
    vulture.scavenge([str(ROOT / name) for name in PACKAGES], exclude=["*/portal/settings.py"])
    for template in (path for name in ("templates", *PACKAGES[1:]) for path in (ROOT / name).rglob("*.html")):
        vulture.used_names.update(IDENTIFIER.findall(template.read_text()))
    for module in (path for name in PACKAGES for path in (ROOT / name).rglob("*.py")):
        for path in DOTTED_PATH.findall(module.read_text()):
            vulture.used_names.update(IDENTIFIER.findall(path))
    return [
        f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno}: {item.message}"
        for item in vulture.get_unused_code(min_confidence=60)
        if item.typ in KINDS or (item.typ == "variable" and item.name.isupper())
    ]


if __name__ == "__main__":
    lines = unused()
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.exit(1 if lines else 0)
