"""Read ready answers: shared ones, and the member's own, which nobody else sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from django.utils.translation import gettext as _

from portal import plain_text
from portal.dynamo import paging
from portal.dynamo.client import fan_out
from portal.dynamo.store import Page
from portal.errors import Invalid, NotFound
from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.desk import changing
from tickets.ready_answers import filling, stored
from tickets.ready_answers.stored import DESK, ReadyAnswerItem, ReadyAnswerRow, UsesItem, WordRow
from tickets.ticket import fields
from tickets.ticket.fields import STATUS, Status
from tickets.ticket.stored import counter

TITLE_LIMIT: Final = 100  # characters
SHORTCUT_LIMIT: Final = 30
PAGE: Final = 50  # answers of a list
SHOWN: Final = 8  # answers that are offered while somebody types
_LOOKED_AT: Final = 50  # rows of one word that are compared with all that is typed


class UnknownAnswer(NotFound):
    """There is no such answer, or it is somebody else's own."""

    def __init__(self) -> None:
        super().__init__(_("There is no such ready answer."))


@dataclass(frozen=True)
class Given:
    """The values that people give an answer. `tags` are as stored; "" and none of the actions change nothing."""

    title: str
    shortcut: str
    body: str
    status: str = ""
    tags: tuple[str, ...] = ()
    resolver: str = ""

    @classmethod
    def of(cls, item: ReadyAnswerItem) -> Given:
        return cls(item.title, item.shortcut, item.body, item.status, (*item.tags,), item.resolver)

    def cleaned(self, tenant: TenantContext) -> Given:
        """Return them as they are stored. Raises Invalid, with the field. One read for a member who gets tickets."""
        title, shortcut = plain_text.line(self.title), "-".join(stored.words(self.shortcut.lstrip(";")))
        for name, text, limit in (("title", title, TITLE_LIMIT), ("shortcut", shortcut, SHORTCUT_LIMIT)):
            if not text:
                raise Invalid(_("Enter a title.") if name == "title" else _("Enter a shortcut."), field=name)
            locales.within(text, limit, name)
        body = fields.comment(self.body)
        filling.check(body)
        status = STATUS.clean(self.status).value if self.status else ""
        tags = tuple(fields.tag_list(",".join(self.tags)))
        if self.resolver not in ("", "me"):
            changing.resolver_name(tenant, self.resolver)
        return Given(title, shortcut, body, status, tags, self.resolver)


def owner_of(tenant: TenantContext, answer_id: str) -> str:
    """Return the owner of an answer that this caller may use: the desk or themselves. Raises NotFound."""
    try:
        return DESK if stored.is_shared(answer_id) else _oneself(tenant)
    except ValueError as error:
        raise UnknownAnswer() from error


def _oneself(tenant: TenantContext) -> str:
    if not tenant.user_id or tenant.standing is not None:  # a key has no answers of its own
        raise UnknownAnswer()
    return tenant.user_id


def _owners(tenant: TenantContext) -> list[str]:
    return [DESK] if tenant.standing is not None or not tenant.user_id else [tenant.user_id, DESK]


def read(tenant: TenantContext, answer_id: str) -> ReadyAnswerItem:
    """Return an answer: one consistent GetItem. Raises NotFound, also for a personal one of somebody else."""
    owner = owner_of(tenant, answer_id)
    item = tenant.repository.get(ReadyAnswerItem, stored.answers, sort=stored.text(owner, answer_id), consistent=True)
    if item is None:
        raise UnknownAnswer()
    return item


def known(tenant: TenantContext, answer_ids: Sequence[str]) -> list[ReadyAnswerItem]:
    """Return those of these answers that there are and that the caller may use: one BatchGetItem."""
    wanted = []
    for answer_id in dict.fromkeys(answer_ids):
        try:
            wanted.append((stored.answers, (), stored.text(owner_of(tenant, answer_id), answer_id)))
        except UnknownAnswer:
            continue
    found = tenant.repository.get_many(ReadyAnswerItem, wanted, consistent=False) if wanted else []
    return [item for item in found if item is not None]


def listed(
    tenant: TenantContext, *, shared: bool, after: str = "", limit: int = PAGE
) -> tuple[list[ReadyAnswerRow], str]:
    """Return a page of a list by shortcut, and the cursor of the next one, "" for none: one Query.

    Raises Invalid for a cursor of another list.
    """
    owner = DESK if shared else _oneself(tenant)
    query = ("ready answers", owner)
    start = None
    if after:
        (shortcut,) = paging.load(after, tenant_id=tenant.tenant_id, query=query)
        start = {
            "pk": {"S": tenant.repository.key(stored.answers)},
            "sk": {"S": stored.row(owner, shortcut)},
        }
    page: Page[ReadyAnswerRow] = tenant.repository.query(
        ReadyAnswerRow, stored.answers, begins_with=stored.rows_of(owner), limit=limit + 1, start=start
    )
    shown = page.items[:limit]
    has_more = len(page.items) > limit
    return shown, paging.dump([shown[-1].shortcut], tenant_id=tenant.tenant_id, query=query) if has_more else ""


def uses(tenant: TenantContext, answer_ids: Sequence[str]) -> dict[str, int]:
    """Return how often answers were used: one BatchGetItem for each hundred."""
    wanted = [(counter, (), stored.uses(answer_id)) for answer_id in answer_ids]
    found = tenant.repository.get_many(UsesItem, wanted, consistent=False) if wanted else []
    return {key: int(item.uses) if item else 0 for key, item in zip(answer_ids, found, strict=True)}


def find(tenant: TenantContext, typed: str, *, limit: int = SHOWN) -> list[ReadyAnswerRow]:
    """Return answers whose shortcut or title has words that begin as what is typed, the best first.

    Two Queries at the same time, of 50 rows each at most, however many answers there are. Nothing typed finds the first
    ones of both lists.
    """
    given = stored.words(typed)
    if typed.strip() and not given:
        return []
    longest = max(given, key=len, default="")

    def rows(owner: str) -> list[ReadyAnswerRow]:
        if not longest:
            return listed(tenant, shared=owner == DESK, limit=limit)[0]
        beginning = stored.words_like(owner, longest)
        return [*tenant.repository.query(WordRow, stored.answers, begins_with=beginning, limit=_LOOKED_AT).items]

    found = chain.from_iterable(fan_out([partial(rows, owner) for owner in _owners(tenant)]))
    fitting = {row.answer_id: row for row in found if _has(row, given)}
    whole = "-".join(given)

    def rank(row: ReadyAnswerRow) -> tuple[bool, bool, str]:
        return row.shortcut != whole, not row.shortcut.startswith(whole), row.shortcut

    return sorted(fitting.values(), key=rank)[:limit] if given else [*fitting.values()][:limit]


def _has(row: ReadyAnswerRow, given: Sequence[str]) -> bool:
    own = found_by(row.title, row.shortcut)
    return all(any(word.startswith(one) for word in own) for one in given)


def found_by(title: str, shortcut: str) -> list[str]:
    return list(dict.fromkeys([shortcut, *stored.words(title)]))[:_WORDS]


_WORDS: Final = 20  # of one answer: each is a row that is written with it


@dataclass(frozen=True)
class Action:
    """A change that an answer makes with the comment. `name` and `value` are those of the comment's form."""

    name: str
    value: str
    label: str


STATUS_ACTION: Final = "set_status"
TAGS_ACTION: Final = "add_tags"
RESOLVER_ACTION: Final = "set_resolver"
ACTIONS: Final = (STATUS_ACTION, TAGS_ACTION, RESOLVER_ACTION)


def actions(item: ReadyAnswerItem, names: Mapping[str, str]) -> Iterator[Action]:
    """Yield what an answer changes. `names` are those of members, by id: who is not among them gets no ticket."""
    yield from actions_of(item.status, item.tags, item.resolver, names)


def actions_of(status: str, tags: Iterable[str], resolver: str, names: Mapping[str, str]) -> Iterator[Action]:
    """Yield these changes as they are shown."""
    if status:
        yield Action(STATUS_ACTION, status, _("Set the status to %(status)s") % {"status": _(Status(status).label)})
    for tag in tags:
        yield Action(TAGS_ACTION, tag, _("Add the tag %(tag)s") % {"tag": tag})
    name = names.get(resolver, "")
    said = _("Assign to me") if resolver == "me" else _("Assign to %(name)s") % {"name": name} if name else ""
    if said:
        yield Action(RESOLVER_ACTION, resolver, said)
