"""Add, finish and list the to-dos of one tenant. The store forms each key; nothing here is told a tenant by its id."""

from __future__ import annotations

from typing import Final, NamedTuple

from examples.todo import stored
from examples.todo.stored import CountItem, LastNumberItem, TodoByState, TodoItem
from portal import clock
from portal.dynamo.store import Action, Store
from portal.errors import ConditionFailed, Invalid, LimitReached, NotFound
from portal.load.tenant_limiter import CHANGE_UNITS, TenantLimiter
from portal.schema import keys

RATE: Final = 50.0  # units a second for each tenant; a change is CHANGE_UNITS of them
LONGEST: Final = 500

limiter: Final = TenantLimiter()  # of this process


class Todo(NamedTuple):
    """A to-do as people see it."""

    list_name: str
    number: int
    text: str
    is_done: bool


class Counts(NamedTuple):
    """The number of open and of done to-dos of a tenant, as far as its changes are counted."""

    open: int
    done: int


class Lists:
    """All lists of one tenant: whose they are is what its store says."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, list_name: str, text: str) -> Todo:
        """Add a to-do at the end of a list. Raises Invalid for a name or a text that cannot be, and LimitReached."""
        if not 0 < len(text) <= LONGEST:
            raise Invalid(f"A to-do has 1 to {LONGEST} characters.")
        self._spend()
        partition = self._list(list_name)
        number = int(self._store.increment(LastNumberItem, stored.numbers_key, sort=list_name).last)
        item = TodoItem(partition, stored.number_key(number), text=text, added_at=clock.stamp())
        item.state_key = self._state(done=False)
        self._store.put(item)
        return Todo(list_name, number, text, is_done=False)

    def finish(self, list_name: str, number: int) -> None:
        """Mark an open to-do as done. Raises NotFound where there is none, or it is done."""
        self._spend()
        actions: list[Action] = [TodoItem.is_done.set(True), TodoItem.state_key.set(self._state(done=True))]
        is_open = TodoItem.state_key == self._state(done=False)
        try:
            self._store.update(self._named(list_name, number), actions, condition=is_open)
        except ConditionFailed:
            raise NotFound(f"{list_name} has no open to-do {number}.") from None

    def remove(self, list_name: str, number: int) -> None:
        """Remove a to-do, open or done. Raises NotFound where there is none."""
        self._spend()
        try:
            self._store.delete(self._named(list_name, number), condition=TodoItem.pk.exists())
        except ConditionFailed:
            raise NotFound(f"{list_name} has no to-do {number}.") from None

    def read(self, list_name: str) -> list[Todo]:
        """Return all of a list by number."""
        self._list(list_name)
        found = self._store.query_all(TodoItem, stored.list_key, list_name, consistent=True)
        return [Todo(list_name, int(item.sk), item.text, item.is_done) for item in found]

    def open(self) -> list[Todo]:
        """Return what is open in all lists, the oldest first; a change takes a moment to get here."""
        return [
            Todo(str(keys.split(row.pk)[-1]), int(row.sk), row.text, is_done=False)
            for row in self._store.query_all(TodoByState, self._state(done=False))
        ]

    def counts(self) -> Counts:
        """Return the counts that `counting.fold` keeps: one GetItem, however many to-dos there are."""
        item = self._store.get(CountItem, keys.tenant)
        return Counts(int(item.open), int(item.done)) if item else Counts(0, 0)

    def _list(self, name: str) -> str:
        try:
            return self._store.key(stored.list_key, name)
        except ValueError:
            raise Invalid("The name of a list has 1 to 512 characters, and none of # and |.") from None

    def _state(self, *, done: bool) -> str:
        return stored.state_key(self._store.tenant_id, done=done)

    def _named(self, list_name: str, number: int) -> TodoItem:
        if number < 1:
            raise NotFound(f"{list_name} has no to-do {number}.")
        return TodoItem(self._list(list_name), stored.number_key(number))

    def _spend(self) -> None:
        answer = limiter.spend(self._store.tenant_id, CHANGE_UNITS, per_second=RATE)
        if answer and not answer.allowed:
            raise LimitReached(f"Too many changes. Try again in {answer.seconds} seconds.")
