from functools import partial

from portal.apps import RoomsConfig


class DeliveryConfig(RoomsConfig):
    name = "delivery"

    def ready(self) -> None:
        super().ready()
        from delivery.mail import mail_delivering, outbox_backend
        from delivery.outbox.destinations import declare_destination
        from delivery.queues import allocation
        from delivery.webhooks import (
            delivering,
            keys,
            pause_mails,
            webhook_checks,  # noqa: F401  # registers the system checks
        )
        from tenants.provisioning import tenant_lifecycle

        tenant_lifecycle.add_at_creation(allocation.give, depending=allocation.PLACE)
        declare_destination(keys.ENDPOINT, partial(delivering.deliver, write=pause_mails.to_owners))
        declare_destination(outbox_backend.MAIL, mail_delivering.deliver, is_private=True)
