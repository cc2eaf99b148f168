"""Name what to use in place of Django's commands that do not fit, most of them for SQL databases.

Django is not imported: manage.py asks first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_NO_MIGRATIONS: Final = "`create_tables` makes the tables of Pooldesk, which has no migrations; --upgrade changes them."
_NO_CACHE: Final = "Pooldesk's cache needs no table."
_SENTENCES: Final = {
    **dict.fromkeys(
        (
            "makemigrations",
            "migrate",
            "optimizemigration",
            "showmigrations",
            "sqlflush",
            "sqlmigrate",
            "sqlsequencereset",
            "squashmigrations",
        ),
        _NO_MIGRATIONS,
    ),
    "changepassword": "People choose a new password by themselves: the sign-in page mails them a link, and so can an "
    "operator on the admin's page Users.",
    "createcachetable": _NO_CACHE,
    "createsuperuser": "`create_operator EMAIL` makes the account of an operator.",
    "dbshell": "`make shell` opens Python with the models; DynamoDB has no SQL.",
    "dumpdata": "`export_tenant SLUG FILE` writes all data of a tenant.",
    "flush": "`make clean` removes all data of `make run`; `purge_tenant SLUG` removes that of one tenant.",
    "inspectdb": "docs/data-model.md describes the tables.",
    "loaddata": "`import_tenant FILE` brings in a tenant, `import_archive FILE` tickets, and `seed` makes sample data.",
    "remove_stale_contenttypes": "Pooldesk stores no content types.",
    "sendtestemail": "All mail goes through the outbox: ask for a new password on the sign-in page, and see it arrive.",
    "test": "`make test` runs the tests, and `make test-fast` most of them within a minute.",
    "testserver": "`make run` starts a server with sample data.",
}


def sentence(argv: Sequence[str]) -> str:
    """Return what to use in place of the command in `argv`, "" for a command that works; `help NAME` is about NAME."""
    words = [word for word in argv[1:] if word != "help"]
    return _SENTENCES.get(words[0], "") if words else ""
