"""The documentation names only what exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class

from portal.schema import registry

ROOT = Path(settings.BASE_DIR)
ISOLATION = (ROOT / "docs" / "isolation.md").read_text()
README = (ROOT / "README.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
CLAIMS = ROOT / "docs" / "claims.md"
GENERATED = ROOT / "docs" / "data-model.md"  # it repeats what docstrings say
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted({*(ROOT / "docs").glob("*.md")} - {GENERATED})]
PROMISE = re.compile(r"\b(never|always|only|at most|every)\b", re.IGNORECASE)


def named_in(text: str) -> list[tuple[str, str]]:
    return sorted(set(re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", text)))


NAMED = named_in(ISOLATION)


@pytest.mark.parametrize(
    "kept",
    ["accounts of members", "the certificate", "backups", "records of streams", "Noise", "`var/log/", "`var/mail`"],
)
def test_what_a_purge_leaves_has_a_row(kept: str) -> None:
    rows = (ROOT / "docs" / "deletion.md").read_text().partition("| what stays | why |")[2].partition("\n\n")[0]
    assert [row for row in rows.splitlines() if kept in row.partition(" | ")[0]]


def test_the_threat_table_names_tests() -> None:
    assert len(NAMED) > 25


def test_each_test_that_the_pages_name_exists() -> None:
    sources = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    missing = [
        f"{page.name}: {file}::{test}"
        for page in PAGES
        for file, test in named_in(page.read_text())
        if file not in sources or (test and f"def {test}(" not in sources[file])
    ]
    assert not missing


def test_each_promise_has_a_test() -> None:
    held = re.findall(r"^\| (.+?) \| (\S+) \| `test_", CLAIMS.read_text(), re.MULTILINE)
    bare = [
        f"{name}:{number}: {line.strip()}"
        for page in PAGES
        if page != CLAIMS and (name := str(page.relative_to(ROOT)))
        for number, line in prose(page)
        if PROMISE.search(line) and not named_in(line)
        if not any(words in line for words, of in held if of == name)
    ]
    assert not bare, "\n".join(bare)


def test_each_promise_in_the_table_still_stands_on_its_page() -> None:
    gone = [
        words
        for words, of in re.findall(r"^\| (.+?) \| (\S+\.md) \|", CLAIMS.read_text(), re.MULTILINE)
        if words not in " ".join((ROOT / of).read_text().split())
    ]
    assert gone == []


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the promising lines of a page outside code, each with its neighbours, where its sentence may continue."""
    code = False
    lines = page.read_text().splitlines()
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True), 1):
        code ^= line.startswith("```")
        if not code and PROMISE.search(line):
            yield number, line if line.startswith("|") else f"{lines[number - 2]} {line} {following}"


def test_every_setting_that_the_environment_can_change_is_in_the_manual() -> None:
    source = (ROOT / "portal" / "settings.py").read_text()
    variables = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', source))
    missing = {v for v in variables if f"`{v}`" not in OPERATIONS}
    assert not missing


def test_every_command_is_in_the_manual() -> None:
    commands = [p.stem for p in ROOT.glob("*/management/commands/*.py") if p.stem != "__init__"]
    missing = [c for c in commands if c not in OPERATIONS]
    assert not missing


def test_every_option_in_the_manual_is_one_of_the_commands_that_its_row_names() -> None:
    wrong = []
    for row in re.findall(r"^\| `[a-z_]+.*", OPERATIONS.partition("\n## Commands\n")[2], re.MULTILINE):
        names = {name for name in re.findall(r"[a-z_]+", row) if name in get_commands()}
        parsers = [load_command_class(get_commands()[name], name).create_parser("manage.py", name) for name in names]
        helped = " ".join(parser.format_help() for parser in parsers)
        helped += " ".join(
            inner.format_help()
            for parser in parsers
            for action in parser._actions
            if isinstance(action.choices, dict)
            for inner in action.choices.values()
        )
        wrong += [
            f"{option} of {sorted(names)}" for option in set(re.findall(r"--[a-z-]+", row)) if option not in helped
        ]
    assert not wrong


def test_the_page_on_placement_names_the_placed_tables_and_says_how_many_desks_they_allow() -> None:
    page = (ROOT / "docs" / "placement.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| the content of the desk |"))
    placed, pool = {table.name for table in registry.placed_tables()}, len(registry.tables())
    assert set(re.findall(r"`([\w.]+)`", row)) == placed
    few, many = ((quota - pool) // len(placed) for quota in (2_500, 10_000))
    numbers = f"{pool} tables and each bridge {len(placed)}, so {few:,} bridges fit beside the pool, or {many:,}."
    assert numbers in page.replace("\n", " ")


def test_every_pinned_requirement_is_explained() -> None:
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert [p for p in pinned if p.lower() not in README.lower()] == []


def test_every_link_to_a_file_leads_somewhere() -> None:
    for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")):
        for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text()):
            led_to = page.parent / target if target else page
            assert led_to.exists(), f"{page}: {target}"
            assert not heading or heading in headings(led_to), f"{page}: {target}#{heading}"


def headings(page: Path) -> set[str]:
    """Return the headings of a page in the form that links use."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = {n for n in re.findall(r"`([\w./]+)`", text) if "/" in n and not n.startswith("/")}
    assert [n for n in sorted(named) if not (ROOT / n).exists() and not [*ROOT.glob(f"*/{n}")]] == []


def test_the_picture_shows_every_package() -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    packages = {name for name in layers() if (ROOT / name.replace(".", "/")).is_dir()}
    missing = {p for p in packages if p.rpartition(".")[2] not in picture}
    assert {p for p in missing if not p.endswith(("templatetags", "management"))} == set()


def test_the_picture_has_the_packages_in_the_order_of_the_layers() -> None:
    lines = layers()
    picture = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    app, order = "", list[str]()
    for line in picture.splitlines():
        if match := re.match(r"   (\w+)/ ", line):
            app = match[1]
        order += takewhile(lines.__contains__, [f"{app}.{word}" for word in line.split()])
    assert len(order) > 30
    wrong = [
        f"{above} stands above {below}"
        for above, below in pairwise(order)
        if above.partition(".")[0] == below.partition(".")[0] and lines[above] > lines[below]
    ]
    assert wrong == []


def test_each_package_says_where_to_begin() -> None:
    pages = [ROOT / name.replace(".", "/") / "__init__.py" for name in layers()]
    unsaid = [
        str(page.relative_to(ROOT))
        for page in pages
        if page.exists() and page.parent.name not in ("management", "templatetags", "proofs", "benchmarks")
        if "Begin with" not in page.read_text()
    ]
    assert unsaid == []


def layers() -> dict[str, int]:
    """Return the names in layers.txt, each with the number of its line from the top."""
    text = (ROOT / "tests" / "architecture" / "layers.txt").read_text()
    lines = [line.split() for line in text.splitlines() if line and not line.startswith(("#", "edge:"))]
    return {name: number for number, line in enumerate(lines) for name in line}


def test_each_package_begins_with_a_file_that_it_has() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for app in ("portal", "tenants", "delivery", "tickets", "api", "proofs")
        for page in (ROOT / app).rglob("__init__.py")
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text())
        if not (page.parent / name).exists()
    ]
    assert missing == []


def test_each_row_of_the_sources_says_where_it_stands_and_which_test_holds_it() -> None:
    parts = (ROOT / "docs" / "sources.md").read_text().split("\n## ")[1:]
    rows = [re.findall(r"^\| (?!requirement|-)(.+?) \| (.+?) \| (.+?) \|$", part, re.MULTILINE) for part in parts]
    assert [len(part) for part in rows] == [23, 37, 21, 52, 33, 8]  # of the five articles and of the card
    assert [row for part in rows for row in part if not row[1].strip() or "`test_" not in row[2]] == []
    assert {name for part in rows for row in part for name in re.findall(r"`(\w+\.py)`", row[2])} <= {
        path.name for path in (ROOT / "tests").rglob("test_*.py")
    }
