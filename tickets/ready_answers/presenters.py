"""Read what a comment's form has of ready answers, and say what it shows of them while somebody writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from portal.errors import Invalid, NotFound
from portal.schema import keys
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tickets.desk.commenting import Along
from tickets.ready_answers import answer_reading, answer_uses, inserting
from tickets.ready_answers.answer_reading import RESOLVER_ACTION, STATUS_ACTION, TAGS_ACTION, Action
from tickets.ready_answers.answer_uses import Uses
from tickets.ready_answers.stored import ReadyAnswerRow
from tickets.ticket.fields import STATUS, TAGS_LIMIT, Status


@dataclass(frozen=True)
class ChosenAnswers:
    """Hold what a comment's form has of ready answers: which ones were inserted, and the changes that were not removed.

    `resolver` is "" where the assignee stays.
    """

    answer_ids: tuple[str, ...] = ()
    status: str = ""
    tags: tuple[str, ...] = ()
    resolver: str = ""

    @classmethod
    def of(cls, form: QueryDict) -> ChosenAnswers:
        """Return what a form has sent. Raises Invalid for what no form of ours sends."""
        status, resolver = form.get(STATUS_ACTION, ""), form.get(RESOLVER_ACTION, "")
        if resolver not in ("", "me") and not keys.USER_ID.match(resolver):
            raise Invalid(_("The assignee is damaged. Remove the ready answer and insert it again."))
        return cls(
            (*form.getlist("answers")[: answer_uses.MOST],),
            STATUS.clean(status).value if status else "",
            (*form.getlist(TAGS_ACTION)[:TAGS_LIMIT],),
            resolver,
        )

    def plus(self, filled: inserting.FilledAnswer) -> ChosenAnswers:
        """Return this with what one more answer changes. Of two statuses or assignees the later one holds."""
        values = {action.name: action.value for action in filled.actions}
        tags = [action.value for action in filled.actions if action.name == TAGS_ACTION]
        return replace(
            self,
            answer_ids=(*dict.fromkeys([*self.answer_ids, filled.id]),),
            status=values.get(STATUS_ACTION, self.status),
            tags=(*dict.fromkeys([*self.tags, *tags]),),
            resolver=values.get(RESOLVER_ACTION, self.resolver),
        )

    def then(self) -> Status | None:
        """Return the status that the ticket gets, None for the one it has."""
        return Status(self.status) if self.status else None

    def along(self, tenant: TenantContext) -> Along:
        """Return the other changes, as the comment takes them."""
        resolver = tenant.user_id if self.resolver == "me" else self.resolver
        return Along(self.tags, resolver or None)

    def uses(self, tenant: TenantContext) -> Uses | None:
        """Return what counts the answers with the comment, None for none."""
        return Uses(tenant, self.answer_ids) if self.answer_ids else None

    def actions(self, tenant: TenantContext) -> list[Action]:
        """Return the changes as the form shows them. One read for the name of an assignee."""
        names: dict[str, str] = {}
        if self.resolver not in ("", "me"):
            person = members.member(tenant.repository, self.resolver)
            names = {self.resolver: person.name if person else _("a former member")}
        return [*answer_reading.actions_of(self.status, self.tags, self.resolver, names)]


@dataclass(frozen=True)
class Composing:
    """Hold the rest of what a comment's form shows, where the page is made anew while somebody writes.

    `found` are answers to choose from, None where nobody has looked for any.
    """

    answer_ids: Sequence[str] = ()
    actions: Sequence[Action] = ()
    typed: str = ""
    found: Sequence[ReadyAnswerRow] | None = None
    problem: str = ""
    preview: str | None = None


NOTHING: Final = Composing()
ACTS: Final = frozenset({"find", "insert", "preview"})  # of the buttons that send a form and keep it
_FOUND: Final = 50


def composed(tenant: TenantContext, number: int, form: QueryDict) -> tuple[str, Composing]:
    """Do what a button of the form asks for that sends nothing; return the text and what the form shows then."""
    act, body, typed = form.get("then"), form.get("body", ""), form.get("answer_words", "").strip()[:100]
    chosen, problem, found = ChosenAnswers(), "", None
    try:
        chosen = ChosenAnswers.of(form)
        choice = form.get("answer_choice", "") if act == "insert" else ""
        if act == "find":
            found = answer_reading.find(tenant, typed, limit=_FOUND)
            whole = [row for row in found if row.shortcut == typed.lstrip(";").casefold()]
            choice = whole[0].answer_id if whole else ""
        if choice:
            one, found, typed = inserting.filled(tenant, number, choice), None, ""
            body, chosen = f"{body.rstrip()}\n\n{one.text}".lstrip(), chosen.plus(one)
        elif act == "insert":
            problem = _("Choose an answer first.")
    except (Invalid, NotFound) as error:
        problem = error.message
    preview = body if act == "preview" else None
    return body, Composing(chosen.answer_ids, chosen.actions(tenant), typed, found, problem, preview)
