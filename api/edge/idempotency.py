"""Do what a POST asks once, however often it is sent with the same Idempotency-Key, and give the same answer each time.

The first to come claims the key, beside the first read of the rule. The answer is written in the transaction of the
change itself, on the condition that the claim still stands: so there is never a change without its answer nor an answer
without its change, and a process that dies, or is slow enough to lose its claim, changes nothing. That rests on no
clock; how long a claim keeps others away only says how soon a repetition may take over from a dead one.

Source: IETF, draft-ietf-httpapi-idempotency-key-header-07.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
import uuid
import zlib
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from django.http import HttpResponse

from api.edge import problem_responses, stored
from api.edge.problem_responses import RequestProblem
from api.edge.routing import ApiRequest
from api.edge.stored import AnswerItem
from portal.dynamo.store import Action, Condition, Store, Transaction
from portal.dynamo.transaction import Companion
from portal.errors import ConditionFailed, PortalError, TransactionRefused

log = logging.getLogger("pooldesk.api")

_T = TypeVar("_T")

HEADER: Final = "Idempotency-Key"
KEPT_SECONDS: Final = 24 * 3600
CLAIM_SECONDS: Final = 10  # longer than a request takes that is well
_A_MOMENT: Final = 2  # seconds within which nearly every request is answered
_PATTERN: Final = "^[!-~]{1,255}$"
_KEY: Final = re.compile(_PATTERN.removesuffix("$") + r"\Z")
ONCE: Final = {  # the header, as routes declare it
    HEADER: {
        "description": "a text of your own, new for each request, of 1 to 255 characters of ASCII without spaces: sent "
        "again with it, the request is done once (24 hours)",
        "schema": {"type": "string", "pattern": _PATTERN, "examples": ["order-4711"]},
    }
}
_CONDITION: Final = "ConditionalCheckFailed"  # DynamoDB's code
_MEMBER: Final = "answer"  # the name of the answer in a transaction
_HEADERS: Final = ("Content-Type", "ETag", "Location", "Retry-After")  # that are kept


class _Replayed(Exception):
    """Another request with this key has been answered."""

    def __init__(self, kept: Any) -> None:
        self.kept = kept


def post(
    request: ApiRequest,
    write: Callable[[Companion[_T]], object],
    render: Callable[[_T], HttpResponse],
    *,
    keep: Callable[[_T], HttpResponse] | None = None,
    is_content: bool = True,
) -> HttpResponse:
    """Answer a POST once. `write` calls a rule with the companion that it is given; `render` makes the answer of what
    the rule tells it. Errors of the rule are raised, and kept as answers as well where they are for good.

    `keep` makes what a repetition gets, where that is less than the first answer: a secret is not kept. `is_content`
    says that the rule changes the content of the desk; else it changes what lies in the pool for everybody, and its
    answer has to be there, too.
    """
    once = _Once(request, render, keep or render, is_content=is_content)
    try:
        write(once)
    except _Replayed as replayed:
        return _sent_again(replayed.kept)
    except PortalError as error:
        once.fail(error)
        raise
    except Exception:
        once.release()
        raise
    return once.response


class _Once(Generic[_T]):
    """The companion of a rule that a POST calls. Without an Idempotency-Key it only makes the answer."""

    def __init__(
        self,
        request: ApiRequest,
        render: Callable[[_T], HttpResponse],
        keep: Callable[[_T], HttpResponse],
        *,
        is_content: bool,
    ) -> None:
        self._render, self._keep = render, keep
        self._repository = request.tenant.repository if is_content else Store("tenant", request.tenant.tenant_id)
        self._request_id = request.request_id
        self._claim = uuid.uuid4().hex
        self._is_claimed = False
        self._pk = ""
        self.response = HttpResponse(status=204)
        key = request.headers.get(HEADER)
        if key is not None:
            if not _KEY.match(key):
                raise RequestProblem(422, "invalid", "Send 1 to 255 characters of ASCII, no spaces.", field=HEADER)
            named = (request.caller.tenant.user_id, str(request.method), request.path, key)
            self._pk = self._repository.key(stored.answer if is_content else stored.pooled_answer, *named)
        self._digest = hashlib.sha256(request.body).hexdigest()

    def meanwhile(self) -> None:
        """Claim the key. Raises _Replayed, and RequestProblem where it is taken or was used for something else.

        A move of the desk takes claims and answers along, as it does tickets: a claim that was made before it stands
        after it.
        """
        if not self._pk:
            return
        now = int(time.time())
        free = (AnswerItem.pk.does_not_exist()) | (AnswerItem.expires_at < now)
        abandoned = AnswerItem.status.does_not_exist() & (AnswerItem.claimed_until < now)
        actions: list[Action] = [
            AnswerItem.tenant_id.set(self._repository.tenant_id),
            AnswerItem.digest.set(self._digest),
            AnswerItem.claim.set(self._claim),
            AnswerItem.claimed_until.set(now + CLAIM_SECONDS),
            AnswerItem.expires_at.set(now + KEPT_SECONDS),
            *(attribute.remove() for attribute in (AnswerItem.status, AnswerItem.headers, AnswerItem.body)),
        ]
        try:
            self._update(actions, free | (abandoned & (AnswerItem.digest == self._digest)))
        except ConditionFailed as failed:
            self._explain(failed.item)
        self._is_claimed = True  # what fails beside it releases it

    def join(self, transaction: Transaction, told: _T) -> None:
        self.response = self._render(told)
        if self._pk:
            actions = _answered(self._keep(told))
            transaction.update(AnswerItem(self._pk), actions, name=_MEMBER, condition=self._still_mine)

    def blame(self, refused: TransactionRefused) -> None:
        """Raise what became of the claim, where that refused the transaction."""
        reason = refused.reason(_MEMBER) if _MEMBER in refused.names else None
        if reason is not None and reason.code == _CONDITION:
            self._explain(reason.item)

    def fail(self, error: PortalError) -> None:
        """Keep a refusal as the answer, unless a repetition may succeed: then nothing is stored."""
        if not self._is_claimed:
            return
        answer = problem_responses.of(error, self._request_id)
        if error.passes or answer.status_code >= 500:
            self.release()
        else:
            self._if_still_mine(_answered(answer))

    def release(self) -> None:
        if self._is_claimed:
            self._if_still_mine([AnswerItem.claimed_until.set(0)])

    @property
    def _still_mine(self) -> Condition:
        condition: Condition = (AnswerItem.claim == self._claim) & AnswerItem.status.does_not_exist()
        return condition

    def _update(self, actions: list[Action], condition: Condition) -> None:
        self._repository.update(AnswerItem(self._pk), actions, condition=condition)

    def _if_still_mine(self, actions: list[Action]) -> None:
        try:
            self._update(actions, self._still_mine)
        except PortalError as error:
            # The claim ends by itself.
            log.info("a claim was left to its end: %s [%s]", error.message, self._request_id)

    def _explain(self, raw: dict[str, Any] | None) -> None:
        """Raise why a claim was not given or does not stand any more; return where it is this one's after all."""
        kept: Any = AnswerItem.from_raw_data(raw) if raw else None
        if kept is None:
            raise _in_progress(1)
        if kept.digest != self._digest:
            raise RequestProblem(
                422, "idempotency_key_reused", "This Idempotency-Key was used with another body.", field=HEADER
            )
        if kept.status is not None:
            raise _Replayed(kept)
        if kept.claim != self._claim:
            raise _in_progress(_seconds_to_wait(int(kept.claimed_until) - int(time.time())))


def _seconds_to_wait(claimed: int) -> int:
    """Return when to come back, of the seconds that a claim still stands: a healthy request ends within a moment, and
    one that has not may be dead."""
    if claimed >= CLAIM_SECONDS - _A_MOMENT:
        return 1
    return max(1, claimed + 1)


def _in_progress(seconds: int) -> RequestProblem:
    return RequestProblem(
        409,
        "idempotency_in_progress",
        "The first request with this Idempotency-Key is still at work.",
        headers={"Retry-After": str(seconds)},
    )


def _answered(response: HttpResponse) -> list[Action]:
    kept = {name: response[name] for name in _HEADERS if name in response}
    return [
        AnswerItem.status.set(response.status_code),
        AnswerItem.headers.set(json.dumps(kept)),
        AnswerItem.body.set(zlib.compress(response.content)),
    ]


def _sent_again(kept: Any) -> HttpResponse:
    headers = json.loads(kept.headers or "{}") | {"Idempotency-Replayed": "true"}
    return HttpResponse(zlib.decompress(kept.body or b""), status=int(kept.status or 500), headers=headers)
