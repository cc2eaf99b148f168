"""Note who carries a job out and how far it is, so that anybody can go on with it.

Two who hold the lease for a moment must do no harm: whatever a job changes demands what that holder has seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from portal.dynamo import client
from portal.dynamo.paging import Page, all_pages, query_request
from portal.dynamo.repository import Action, Condition
from portal.errors import ConditionFailed, Conflict
from portal.schema.registry import Role
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.items import JobItem

I = TypeVar("I", bound=JobItem)  # noqa: E741  # an item


class TakenOver(Conflict):
    """Somebody else has the lease of the job."""

    def __init__(self) -> None:
        super().__init__("Somebody else carries this out.")


@dataclass(frozen=True)
class JobNotes(Generic[I]):
    """The last job of each tenant, of one kind: they lie in one partition of the directory, and a role writes them."""

    model: type[I]
    partition: str
    role: Role

    def of(self, tenant_id: str) -> I:
        """Return the key of a tenant's last job, for an update."""
        return self.model(self.partition, tenant_id)

    def last(self, tenant_id: str) -> I | None:
        """Return a tenant's last job as it is now, None where it never had one: one consistent read."""
        key = {DIRECTORY.hash: {"S": self.partition}, str(DIRECTORY.range): {"S": tenant_id}}
        raw = self._send("GetItem", {"Key": key, "ConsistentRead": True}).get("Item")
        return self.model.from_raw_data(raw) if raw else None

    def all_last(self) -> list[I]:
        """Return the last job of each tenant that has one noted, newest first: one consistent Query."""
        request = query_request(DIRECTORY, self.partition, consistent=True)

        def page(start: dict[str, Any] | None) -> Page[dict[str, Any]]:
            answer = self._send("Query", request | ({"ExclusiveStartKey": start} if start else {}))
            return Page(answer["Items"], answer.get("LastEvaluatedKey"))

        found = [self.model.from_raw_data(raw) for some in all_pages(page) for raw in some.items]
        return sorted(found, key=lambda item: item.begun_at, reverse=True)

    def take(self, item: I, *, me: str) -> I:
        """Take the lease of a job that stands as it was seen. Raises TakenOver where somebody was faster."""
        seen = (self.model.holder == item.holder) & (self.model.counter == int(item.counter))
        return self._changed(item, self.actions(holder=me, trouble=""), seen, me)

    def note(self, item: I, *, me: str, **values: Any) -> I:
        """Give a heartbeat, and write how far it is; return the item as it is then. Raises TakenOver without lease."""
        return self._changed(item, self.actions(**values), self.model.holder == me, me)

    def actions(self, **values: Any) -> list[Action]:
        """Return the actions that set these attributes."""
        return [getattr(self.model, name).set(value) for name, value in values.items()]

    def _changed(self, item: I, some: list[Action], condition: Condition, me: str) -> I:
        condition &= self.model.begun_at == item.begun_at
        heartbeat = self.model.counter.set(self.model.counter + 1)
        request = self.of(item.name).get_update_kwargs_from_instance(actions=[*some, heartbeat], condition=condition)
        request |= {"ReturnValuesOnConditionCheckFailure": "ALL_OLD", "ReturnValues": "ALL_NEW"}
        try:
            return self.model.from_raw_data(self._send("UpdateItem", request)["Attributes"])
        except ConditionFailed as failed:
            # A lost answer is sent again, and the second time it meets what the first has written.
            now = self.model.from_raw_data(failed.item) if failed.item else None
            if now is not None and now.holder == me and now.begun_at == item.begun_at:
                return now
            raise TakenOver from failed

    def _send(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        sent = {**request, "TableName": DIRECTORY.full_name}
        answer: dict[str, Any] = client.connection(self.role).dispatch(operation, sent)
        return answer
