"""Extract the texts of pages for people outside, and compile the catalogue of their translations.

The catalogue has its entries by source file. WRITE_DOCS=1 makes the test add what is missing to it, without a
translation, drop what is used no more, and compile it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages import extract, mofile, pofile
from babel.messages.catalog import Catalog
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
CATALOGUE = ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po"
COMPILED = CATALOGUE.with_suffix(".mo")
_FIXED = datetime(2026, 1, 1, tzinfo=UTC)  # so that the same texts make the same file
_EXTENDS = re.compile(r"""\{%-?\s*extends\s+["']([^"']+)["']""")
_INCLUDES = re.compile(r"""\{%-?\s*include\s+["']([^"']+)["']""")
_MARKED = re.compile(r"^from django\.utils\.translation import", re.MULTILINE)
_BABEL_OPTIONS: dict[str, Any] = {"newstyle_gettext": "true"}


def templates() -> list[Path]:
    """The templates of guests' pages and letters: the frame with its parts, what extends it, and what those include."""
    folder = ROOT / "templates"
    found = {*(folder / "outside").glob("*.html"), *(folder / "replies" / "mail").glob("*.html")}
    everywhere = [path for path in folder.rglob("*.html") if "/mail/" not in str(path)]
    while True:
        known = {str(path.relative_to(folder)) for path in found}
        included = {name for path in found for name in _INCLUDES.findall(path.read_text())}
        more = {
            path
            for path in everywhere
            if str(path.relative_to(folder)) in included or {*_EXTENDS.findall(path.read_text())} & known
        }
        if more <= found:
            return sorted(found)
        found |= more


def modules() -> list[Path]:
    """The modules that mark texts."""
    found = [path for app in ("portal", "tickets") for path in (ROOT / app).rglob("*.py")]
    return sorted(path for path in found if _MARKED.search(path.read_text()) and path.name != "jinja.py")


def marked() -> Catalog:
    """A catalogue of all texts that are marked, without translations."""
    catalogue = Catalog(locale="de")
    for path in (*templates(), *modules()):
        method = "jinja2.ext.babel_extract" if path.suffix == ".html" else "python"
        keywords = {**extract.DEFAULT_KEYWORDS, "gettext_lazy": None, "ngettext_lazy": (1, 2), "gettext_noop": None}
        with path.open("rb") as file:
            for _, text, *_ in extract.extract(method, file, keywords=keywords, options=_BABEL_OPTIONS):
                catalogue.add(text, locations=[(str(path.relative_to(ROOT)), 1)])
    return catalogue


def stored() -> Catalog:
    with CATALOGUE.open("rb") as file:
        return pofile.read_po(file, locale="de")


def compiled(catalogue: Catalog) -> bytes:
    catalogue.creation_date = catalogue.revision_date = _FIXED
    file = BytesIO()
    mofile.write_mo(file, catalogue)
    return file.getvalue()


def write() -> None:
    """Bring the catalogue to what is marked now, keep its translations, and compile it."""
    known, wanted = stored() if CATALOGUE.exists() else Catalog(locale="de"), marked()
    for message in wanted:
        if message.id and (translated := known.get(message.id)):
            message.string = translated.string
    CATALOGUE.parent.mkdir(parents=True, exist_ok=True)
    with CATALOGUE.open("wb") as file:
        pofile.write_po(file, wanted, width=110, sort_by_file=True, include_lineno=False, omit_header=True)
    COMPILED.write_bytes(compiled(stored()))


# Modules whose sentences reach guests, with the names there whose sentences do not.
GUEST_RULES: dict[str, frozenset[str]] = {
    "tickets/attachments/attachments.py": frozenset(),
    "tickets/attachments/forms.py": frozenset(),
    "tickets/public_form/challenges.py": frozenset(),
    "tickets/public_form/receiving.py": frozenset({"receive"}),  # a mark of the letter, which agents read
    "tickets/public_form/views.py": frozenset({"settings_page", "change_looks"}),
    "tickets/replies/reply_mails.py": frozenset(),
    "tickets/requester_pages/forms.py": frozenset(),
    "tickets/requester_pages/presenters.py": frozenset(),
    "tickets/requester_pages/requester_page.py": frozenset(),
    "tickets/requester_pages/views.py": frozenset(),
    "tickets/ticket/fields.py": frozenset({"tag_list", "clean", "missing", "DESCRIPTION"}),
}
_MARKS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext"}


def unmarked_sentences(path: str) -> Iterator[str]:
    """Yield the sentences of a module that would stay English: texts of several words that end as sentences do."""
    tree = ast.parse((ROOT / path).read_text())

    def look(node: ast.AST) -> Iterator[str]:
        named = node.target if isinstance(node, ast.AnnAssign) else node
        if {getattr(named, "name", ""), getattr(named, "id", "")} & GUEST_RULES[path]:
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MARKS:
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            text = ast.unparse(node).strip("f'\"")
            if " " in text and text.endswith((".", "?", ":")):
                yield text
            return
        for child in ast.iter_child_nodes(node):
            yield from look(child)

    return look(tree)


_JINJA = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
_READ_OUT = re.compile(r"""\b(?:aria-label|placeholder|title|alt)="([^"]*)\"""")
_NAMES = {"pooldesk"}  # the same in every language


def unmarked(path: Path) -> Iterator[str]:
    """Words of a template that would stay English."""
    text = _VALUE.sub(" ", _JINJA.sub(" ", path.read_text()))
    for piece in (_TAG.sub("\n", text), *_READ_OUT.findall(text)):
        for line in piece.splitlines():
            words = [w for w in re.findall(r"[^\W\d_]{2,}", re.sub(r"&\w+;", " ", line)) if w.lower() not in _NAMES]
            if words:
                yield " ".join(words)
