"""`manage.py search`: what somebody at a desk would find."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand
from portal.schema.access_patterns import cost
from tenants.tenancy import context, tenant_directory
from tickets.search import ticket_search
from tickets.search.results import Found, Hit, Piece


class Command(PortalCommand):
    costs = cost(
        get="counter, requester, setup, slug, tenant, ticket",
        query="members by name, requesters by name, search directory, ticket",
        reads=15,
    )
    help = (
        "Search the tickets of a tenant, internal notes included, and print the best ones with what was found. The "
        "query is what one types into the search box; one that begins with a minus stands at the end, behind --. Exit "
        "status: 0, whether something was found or not; 1 for a query that asks nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("query", metavar="QUERY", help='words, "phrases", -word, word*, status:open and the like')
        parser.add_argument("--tenant", required=True, metavar="SLUG", help="whose tickets")
        parser.add_argument(
            "--newest", action="store_true", help="the highest numbers first, instead of the best tickets"
        )
        parser.add_argument("--further", default="", metavar="CURSOR", help="go on where a search with --json ended")
        parser.add_argument("--json", action="store_true", help="print the result for machines")

    def work(self, options: dict[str, Any]) -> None:
        tenant = context.for_system(tenant_directory.find(options["tenant"]))
        found = ticket_search.find(tenant, options["query"], newest_first=options["newest"], further=options["further"])
        if options["json"]:
            self.stdout.write(json.dumps(_document(found), ensure_ascii=False, indent=1))
            return
        for sentence in found.explanations:
            self.stderr.write(sentence)
        self._print(found.hits)
        many = "There are more." if found.further else "These are all." if found.hits else "Nothing was found."
        self.stderr.write(many)
        if found.nearly:
            self.stderr.write("With some of the words:")
            self._print(found.nearly)

    def _print(self, hits: Sequence[Hit]) -> None:
        for hit in hits:
            self.stdout.write(f"{hit.summary.number:>8}  {_marked(hit.title)}")
            if hit.snippet:
                self.stdout.write(f"{'':>8}  {hit.where}: {_marked(hit.snippet)}")


def _document(found: Found) -> dict[str, Any]:
    return {
        "tickets": [_ticket(hit) for hit in found.hits],
        "nearly": [_ticket(hit) for hit in found.nearly],
        "about": found.about if found.is_counted else None,
        "explanations": found.explanations,
        "further": found.further,
    }


def _ticket(hit: Hit) -> dict[str, Any]:
    summary = hit.summary
    return {
        "number": int(summary.number),
        "title": summary.title,
        "status": summary.status,
        "updated_at": summary.updated_at,
        "where": hit.where.value,
        "snippet": _marked(hit.snippet),
    }


def _marked(pieces: tuple[Piece, ...]) -> str:
    return "".join(f"[{piece.text}]" if piece.is_match else piece.text for piece in pieces)
