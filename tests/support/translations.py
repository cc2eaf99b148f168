"""Extract the texts of pages, letters and mails, and compile the catalogue of their translations.

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

from portal.web import jinja

ROOT = Path(settings.BASE_DIR)
CATALOGUE = ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po"
COMPILED = CATALOGUE.with_suffix(".mo")
APPS = ("portal", "tenants", "tickets", "delivery")
IN_ENGLISH = re.compile(
    r"/(management|admin|seeding|deployment|schema|engines|load|hosting|isolation|verification|dynamo|nosql"
    r"|objects|queueing|streams|operators|counting|following|sharding|moving|purging)/"
    r"|/(checks|nosql_admin|gunicorn_worker|ticket_events)\.py$|^portal/errors\.py$"
    r"|^delivery/((mail|outbox|queues|timers)/|apps|lambda_handlers|webhooks/development_receiver)"
    r"|^tickets/(search/(index|stored)|data/(archive|exporting|import|stored))"
    r"|^tenants/(lifecycle/(arriving_rows|certificates|import_notes|tenant_\w+)|impersonation/impersonating)\.py$"
)
# Beginnings of paths whose texts reach programs, developers, operators and logs alone.
ENGLISH_PATHS = (
    "portal/mailing/mail_transport.py",
    "portal/mailing/ses_backend.py",
    "portal/templates/",
    "templates/api/",
    "templates/webhooks/receiver.html",
    "templates/webhooks/receiver_page.html",
    "templates/webhooks/sent_mails.html",
    "tenants/api_keys/key_authentication.py",
    "tenants/auditing/audit_export.py",
    "tenants/auditing/verify_audit_export.py",
    "tickets/admin/",
    "tickets/attachments/previews.py",
    "tickets/letters/arrival.py",
    "tickets/letters/smtp_receiver.py",
    "tickets/management/",
    "tickets/templates/",
)
_FIXED = datetime(2026, 1, 1, tzinfo=UTC)  # so that the same texts make the same file
_MARKED = re.compile(r"^from django\.utils\.translation import", re.MULTILINE)
_BABEL_OPTIONS: dict[str, Any] = {"newstyle_gettext": "true"}


def templates() -> list[Path]:
    """Return the templates of all pages, letters and mails."""
    return sorted(path for path in (ROOT / "templates").rglob("*") if path.suffix in (".html", ".txt"))


def translated_templates() -> list[Path]:
    return [path for path in templates() if not str(path.relative_to(ROOT)).startswith(ENGLISH_PATHS)]


def modules() -> list[Path]:
    """Return the modules that mark texts."""
    found = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    return sorted(path for path in found if _MARKED.search(path.read_text()) and path.name != "jinja.py")


def speaking_modules() -> list[str]:
    """Return the modules whose sentences reach people at pages and in mails.

    Commands, the operators' admin, and what stands below the pages speak English.
    """
    found = (str(path.relative_to(ROOT)) for app in APPS for path in (ROOT / app).rglob("*.py"))
    return sorted(path for path in found if not path.startswith(ENGLISH_PATHS) and not IN_ENGLISH.search(path))


def marked() -> Catalog:
    """A catalogue of all texts that are marked, without translations."""
    catalogue = Catalog(locale="de")
    for path in (*templates(), *modules()):
        method = "jinja2.ext.babel_extract" if path.suffix != ".py" else "python"
        keywords = {**extract.DEFAULT_KEYWORDS, "gettext_lazy": None, "ngettext_lazy": (1, 2), "gettext_noop": None}
        with path.open("rb") as file:
            for _, text, *_ in extract.extract(method, file, keywords=keywords, options=_BABEL_OPTIONS):
                catalogue.add(text, locations=[(str(path.relative_to(ROOT)), 1)])
    for path in sorted(jinja.SCRIPTS.glob("*.js")):
        with path.open("rb") as file:
            for _, text, *_ in extract.extract("javascript", file, keywords={"gettext": None, "ngettext": (1, 2)}):
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


# Of a module that speaks, the names whose sentences reach nobody at a page.
EXEMPT: dict[str, frozenset[str]] = {
    "tenants/sign_in/accounts.py": frozenset({"set_active", "set_operator", "_update"}),  # for operators
    "tenants/sign_in/session_lifecycle.py": frozenset({"refused"}),  # stored in the platform's own audit trail
    "tenants/tenancy/tenant_directory.py": frozenset({"find", "refuse_arriving"}),  # for operators and commands
    "tickets/articles/article_changes.py": frozenset({"lead_of"}),  # marks, and no words
    "tickets/letters/ledger.py": frozenset({"AlreadyFiled"}),  # an exception that stays within
    "tickets/letters/views.py": frozenset({"original_letter"}),  # a policy
    "tickets/public_form/receiving.py": frozenset({"receive"}),  # a mark of the letter
    "tickets/rules/engine.py": frozenset({"deliver", "_count"}),
    "tickets/rules/answering.py": frozenset({"_OVER", "blame", "answer"}),
    "delivery/webhooks/delivering.py": frozenset({"deliver"}),
    "delivery/webhooks/endpoints.py": frozenset({"TEST"}),
    "tickets/notices/digest.py": frozenset({"_NOBODY"}),
    "tickets/notices/telling.py": frozenset({"_DIGEST", "deliver"}),
    "tickets/search/ticket_search.py": frozenset({"NOTHING_INDEXED"}),
    "tickets/checklists/ticking.py": frozenset({"tick"}),  # a verb, translated where it is shown
    "tickets/desk/many.py": frozenset({"sentence"}),  # it has no words of its own
    "tickets/isolation_runs/attempts.py": frozenset({"_partiql"}),  # an attempt
    "tickets/isolation_runs/platform_proofs.py": frozenset({"record"}),  # for operators and commands
    "tickets/jobs/leased_job.py": frozenset({"TakenOver"}),
    "tickets/ticket/fields.py": frozenset({"DESCRIPTION"}),  # an example
    "tickets/time_machine/presenters.py": frozenset({"others"}),  # it has no words of its own
    "tickets/time_machine/restoring.py": frozenset({"wishes_for"}),  # a verb, translated where it is shown
}
_MARKS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext"}


def unmarked_sentences(path: str) -> Iterator[str]:
    """Yield the sentences of a module that would stay English: texts of several words that end as sentences do."""
    tree = ast.parse((ROOT / path).read_text())

    def look(node: ast.AST) -> Iterator[str]:
        named = node.target if isinstance(node, ast.AnnAssign) else node
        if {getattr(named, "name", ""), getattr(named, "id", "")} & EXEMPT.get(path, frozenset()):
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MARKS:
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("log.", "ImproperlyConfigured")):
            return  # for operators
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            text = ast.unparse(node).strip("f'\"")
            if " " in text and text.endswith((".", "?", ":")):
                yield text
            return
        for child in ast.iter_child_nodes(node):
            yield from look(child)

    return look(tree)


_JINJA = re.compile(r"\{% block \w+_class %\}[^{]*\{% endblock %\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
_ATTRIBUTE = re.compile(r"""\s[\w:-]+="[^"]*\"""")
_READ_OUT = re.compile(r"""\b(?:aria-label|placeholder|title|alt|data-label)="([^"]*)\"""")
_NAMES = {"pooldesk"}  # the same in every language


def unmarked(path: Path) -> Iterator[str]:
    """Words of a template that would stay English."""
    text = _VALUE.sub(" ", _JINJA.sub(" ", path.read_text()))
    for piece in (_TAG.sub("\n", _ATTRIBUTE.sub("", text)), *_READ_OUT.findall(text)):
        for line in piece.splitlines():
            words = [w for w in re.findall(r"[^\W\d_]{2,}", re.sub(r"&\w+;", " ", line)) if w.lower() not in _NAMES]
            if words:
                yield " ".join(words)
