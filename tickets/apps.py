from __future__ import annotations

from typing import TYPE_CHECKING

from portal.apps import RoomsConfig

if TYPE_CHECKING:
    from delivery.outbox.destinations import Outcome
    from delivery.outbox.outbox_rows import Work


class TicketsConfig(RoomsConfig):
    name = "tickets"

    def ready(self) -> None:
        super().ready()
        from delivery.outbox import destinations
        from tenants.lifecycle import desk_settings
        from tickets.desk_export import export_job, export_mails
        from tickets.ticket import (
            fields,
            ticket_events,
        )

        export_job.tell_with(export_mails.ready)
        destinations.declare_destination(ticket_events.REPLY, _to_requester)
        desk_settings.declare_default(
            desk_settings.Default(
                name="ticket_priority",
                label="Priority of a new ticket",
                choices=tuple((p.value, p.label) for p in fields.Priority),
                initial=fields.Priority.NORMAL.value,
            )
        )


def _to_requester(work: Work) -> Outcome:
    """Deliver a letter. The modules are loaded with the first one: most processes send none."""
    from tickets.replies import reply_delivering, reply_mails

    writers = reply_delivering.Writers(reply_mails.answer, reply_mails.acknowledgement)
    return reply_delivering.deliver(work, writers=writers)
