"""Let a requester rate how their ticket was handled: good or bad, with words of their own, each rating once.

A ticket can be rated once it is resolved. The rating is a field of the ticket, which lists and aggregates know; the
words are in the history, where they are found, exported and erased as comments are.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from delivery.outbox.publisher import publish
from portal import clock, plain_text
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Transaction
from portal.errors import Conflict, Invalid, Overtaken, TransactionRefused
from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.desk import changing
from tickets.desk.changing import REQUEST, TicketState
from tickets.ticket import set_aside, stored, ticket_events
from tickets.ticket.fields import RATING, Rating, Status
from tickets.ticket.stored import SummaryItem

CHANGED: Final = "changed"
SAID_MORE: Final = gettext_noop("said more about their rating")
WORDS_LIMIT: Final = 2000  # characters
OPEN_FOR: Final = timedelta(days=30)  # after it was resolved, a closed ticket keeps its rating
_ATTEMPTS: Final = 6


class NotRatable(Conflict):
    """The ticket is not resolved yet, or has been closed for too long."""

    code = "not_ratable"


def can_be_rated(summary: SummaryItem) -> bool:
    """Tell whether the requester can rate the ticket, or change the rating."""
    if summary.status == Status.RESOLVED:
        return True
    ends = clock.parse(summary.resolved_at or summary.updated_at) + OPEN_FOR
    return bool(summary.status == Status.CLOSED and clock.now() < ends)


def rate(tenant: TenantContext, number: int, rating: Rating, *, words: str = "", request_id: str) -> None:
    """Store a rating with its words, by whoever the context acts for: one read and one transaction.

    The same request again changes nothing, and neither does the same rating without words. Raises NotFound, Invalid for
    words that are too long, NotRatable, and Overtaken where the ticket is being changed each time.
    """
    said = plain_text.block(words)
    if len(said) > WORDS_LIMIT:
        told = {"limit": locales.current().number(WORDS_LIMIT), "count": locales.current().number(len(said))}
        raise Invalid(_("Use at most %(limit)s characters; this has %(count)s.") % told, field="words")
    digest = changing.request_digest(request_id, str(number), RATING.name, rating.value, said)

    def attempt() -> None:
        summary = changing.read(tenant, number)
        set_aside.refuse(summary)
        if not can_be_rated(summary):
            raise NotRatable(_("This ticket cannot be rated now."))
        if summary.rating == rating and not said:
            return
        transaction = Transaction()
        _add(tenant, transaction, summary, rating, said, digest)
        try:
            tenant.repository.transact(transaction)
        except TransactionRefused as refused:
            made = refused.reason(REQUEST)
            if made is None or made.item is None:  # else this very request was written before
                raise

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused),
        attempts=_ATTEMPTS,
        given_up=lambda: Overtaken(_("This ticket is being changed at this moment. Try again.")),
    )


def _add(
    tenant: TenantContext, transaction: Transaction, summary: SummaryItem, rating: Rating, words: str, digest: str
) -> None:
    state, at = TicketState.of(summary), max(clock.stamp(), summary.updated_at)
    changes = [(RATING.name, summary.rating, rating.value)] if summary.rating != rating else []
    actions: list[Action] = [SummaryItem.rating.set(rating.value), SummaryItem.rated_at.set(at)]
    if changes:
        actions.append(SummaryItem.version.set(state.version + 1))
    changing.put_record(tenant, transaction, stored.MADE_COMMENT, digest, number=state.number)
    changing.revise(tenant, transaction, state, at=at, actions=actions)
    entry = changing.event(tenant, summary.pk, at, verb=CHANGED if changes else SAID_MORE, changes=changes)
    entry.body, entry.request = words, digest
    transaction.put(entry)
    told = ticket_events.revised(
        tenant,
        number=state.number,
        version=state.version + bool(changes),
        changes=changes,
        resolver=(state.resolver, state.resolver),
    )
    if rating == Rating.BAD and summary.listeners:
        to = (ticket_events.NOTICE,)
        told.append(
            ticket_events.entered(tenant, state.number, entry=entry.sk, version=state.version + bool(changes), to=to)
        )
    publish(tenant, transaction, *told, subject=ticket_events.subject(state.number), at=at)
