"""Keep the code easy to find one's way in: limits on sizes, unique names, readable docstrings, the glossary."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.sources import reading, statements, text, tree

ROOT = Path(settings.BASE_DIR)
APPS = ("portal", "tenants", "delivery", "tickets", "api", "proofs", "benchmarks", "examples")
# File names that every package may use.
ROLES = {
    "__init__", "__main__", "admin", "apps", "deployment", "facades", "forms", "items", "keys", "middleware",
    "holdings", "models", "presenters", "stored", "tables", "urls", "views",
}  # fmt: skip
# Class names that Django looks for.
CONVENTIONS = {"Command", "Meta", "Media"}
# First words of a sentence that hide its subject.
SUBJECTLESS = ("What ", "Who ", "Whoever ", "Whether ")
# Further ones with which a docstring does not begin.
UNCLEAR_BEGINNINGS = ("That ", "As ", "Those ", "How ")
SENTENCE_END = re.compile(r"(?<=[.:!?])\s+|\n\s*\n|\n(?=\s*[|*#-])")
# First words of a function's docstring that describes its result instead of what it does.
NOUNS_BEGIN = {
    "A", "All", "An", "Another", "Any", "Both", "Called", "Counts", "Each", "Every", "From", "In", "Its", "No",
    "Numbers", "Of", "One", "Partition", "Raises", "Seconds", "Some", "Somebody", "Sort", "Text", "The", "These", "Why",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def only_while_they_are_read() -> Iterator[None]:
    with reading():
        yield


@cache
def modules() -> list[Path]:
    return [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]


def said(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_module_is_longer_than_600_lines() -> None:
    lengths = {said(path): len(text(path).splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > 600} == {}


def test_no_function_is_longer_than_50_lines() -> None:
    long = [
        f"{said(path)}:{node.lineno} {node.name}"
        for path in modules()
        for node in statements(path)
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 50
    ]
    assert long == []


def test_a_number_and_its_noun_are_formed_by_one_function() -> None:
    """`plain_text.amount`: "1 tenants" was said by commands that each formed their own."""
    own = re.compile(r"""import pluralize|(["'])s\1 \* \(|["']s?["'] if [^"'\n]{1,40}[!=]= 1 else""")
    assert [f"{said(path)}: {found[0]}" for path in modules() for found in own.finditer(text(path))] == []


def test_no_folder_but_one_of_commands_holds_more_than_20_modules() -> None:
    folders = Counter(
        said(path.parent) for path in modules() if path.stem != "__init__" and path.parent.name != "commands"
    )
    assert [folder for folder, count in folders.items() if count > 20] == []


def test_a_class_name_stands_for_one_thing() -> None:
    places = defaultdict(set)
    for path in modules():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and node.name not in CONVENTIONS and not node.name.startswith("_"):
                places[node.name].add(said(path))
    assert {name: sorted(paths) for name, paths in places.items() if len(paths) > 1} == {}


def test_a_module_name_stands_for_one_thing() -> None:
    # A command is named for what it does, and may share the name of the rule that it calls.
    named = Counter(path.stem for path in modules() if path.stem not in ROLES and path.parent.name != "commands")
    assert [name for name, count in named.items() if count > 1] == []


def test_docstrings_name_their_subject() -> None:
    subjectless = [
        f"{said(path)}:{getattr(node, 'lineno', 1)} {sentence}"
        for path in modules()
        for node in statements(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (docstring := ast.get_docstring(node))
        for n, sentence in enumerate(SENTENCE_END.split(docstring))
        if sentence.startswith(SUBJECTLESS) or (n == 0 and sentence.startswith(UNCLEAR_BEGINNINGS))
    ]
    assert subjectless == []


def test_the_documentation_names_its_subjects() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    subjectless = [
        f"{said(page)}: {sentence[:80]}"
        for page in pages
        for sentence in SENTENCE_END.split(text(page))
        if sentence.lstrip("#|*- ").startswith(SUBJECTLESS)
    ]
    assert subjectless == []


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    nouns = [
        f"{said(path)}:{node.lineno} {first.splitlines()[0]}"
        for path in modules()
        for node in statements(path)
        if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(d) for d in node.decorator_list)
        if (first := ast.get_docstring(node)) and first.split()[0] in NOUNS_BEGIN
    ]
    assert nouns == []


# --- the glossary ---

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
TERMS = re.findall(r"^\| \*\*(.+?)\*\* \|.*\| `(.+?)` \|$", GLOSSARY, re.MULTILINE)
RETIRED = re.findall(r"^\| ~~(.+?)~~ \|", GLOSSARY, re.MULTILINE)


def test_the_glossary_has_at_most_40_terms() -> None:
    assert 20 < len(TERMS) <= 40


def test_each_term_stands_where_the_glossary_says() -> None:
    missing = [
        f"{term}: {place}" for term, place in TERMS if not (ROOT / place).exists() or not stands_in(term, ROOT / place)
    ]
    assert missing == []


def stands_in(term: str, place: Path) -> bool:
    texts = [place] if place.is_file() else [*place.rglob("*.py")]
    # "dead letter" stands in DeadLetterItem and in dead_letters.py too.
    pattern = re.compile(r"[\s_-]?".join(map(re.escape, term.split())), re.IGNORECASE)
    return any(pattern.search(text(one)) or pattern.search(one.name) for one in texts)


def test_retired_words_do_not_come_back() -> None:
    assert len(RETIRED) > 8
    pattern = re.compile(rf"(?<![a-z])({'|'.join(RETIRED)})(?![a-z])", re.IGNORECASE)
    texts = [*modules(), *(ROOT / "templates").rglob("*.html"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    back = [
        f"{said(path)}:{number} {match[0]}"
        for path in texts
        if path.name != "glossary.md" and pattern.search(text(path))
        for number, line in enumerate(text(path).splitlines(), 1)
        if (match := pattern.search(line))
    ]
    assert back == []
