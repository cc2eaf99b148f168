from __future__ import annotations

from typing import TYPE_CHECKING

from portal.apps import RoomsConfig

if TYPE_CHECKING:
    from delivery.outbox.destinations import Outcome
    from delivery.outbox.outbox_rows import Work


class DeliveryConfig(RoomsConfig):
    name = "delivery"

    def ready(self) -> None:
        super().ready()
        from delivery.mail import outbox_backend
        from delivery.outbox.destinations import declare_destination
        from delivery.queues import allocation, depths
        from delivery.timers import due
        from delivery.webhooks.stored import ENDPOINT
        from portal.web import readiness
        from tenants.lifecycle import tenant_lifecycle

        tenant_lifecycle.add_at_creation(allocation.give, depending=allocation.PLACE)
        readiness.declare_look("queues", depths.summary)
        readiness.declare_look("due", due.summary_of_lag)
        declare_destination(ENDPOINT, _to_endpoint)
        declare_destination(outbox_backend.MAIL, _to_mailbox, is_private=True)


# What delivers is loaded with the first delivery: most processes make none.


def _to_endpoint(work: Work) -> Outcome:
    from delivery.webhooks import delivering, pause_mails

    return delivering.deliver(work, write=pause_mails.to_owners)


def _to_mailbox(work: Work) -> Outcome:
    from delivery.mail import mail_delivering

    return mail_delivering.deliver(work)
