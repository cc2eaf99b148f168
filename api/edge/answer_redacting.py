"""Take words out of answers that are kept for requests that are sent again."""

from __future__ import annotations

import zlib
from datetime import timedelta
from functools import partial
from typing import Final

from api.edge.stored import AnswerItem, TenantAnswer
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import chunked
from portal.errors import ConditionFailed
from portal.schema import keys
from tenants.tenancy.context import TenantContext
from tenants.tenancy.redaction import RedactedTicket, SecretWords

_KEPT: Final = timedelta(days=2)  # TTL removes an answer after a day, and some time later
_AT_ONCE: Final = 16


def redact(tenant: TenantContext, ticket: RedactedTicket) -> int:
    """Take the words out of the answers of the last day, and return out of how many.

    Nothing is read where nothing was written in the ticket in that time. Else it costs a Query of the keys of the
    desk's answers, a GetItem for each, and an UpdateItem for each that has the words.
    """
    if ticket.moments[-1] < clock.stamp(clock.now() - _KEPT):
        return 0
    found = 0
    for some in chunked(tenant.repository.query_all(TenantAnswer, keys.tenant), _AT_ONCE):
        found += sum(fan_out([partial(_redact, tenant, ticket.words, row.pk) for row in some]))
    return found


def _redact(tenant: TenantContext, words: SecretWords, pk: str) -> bool:
    _, name, parts = keys.collection_parts(pk) or ("", "", ())
    item = tenant.repository.get(AnswerItem, keys.collection, name, *parts, consistent=True)
    if item is None or not item.body:
        return False
    text = zlib.decompress(item.body).decode()
    if (after := words.without_json(text)) == text:
        return False
    try:
        action = AnswerItem.body.set(zlib.compress(after.encode()))
        tenant.repository.update(AnswerItem(item.pk), [action], condition=AnswerItem.claim == item.claim)
    except ConditionFailed:  # TTL has removed it meanwhile
        return False
    return True
