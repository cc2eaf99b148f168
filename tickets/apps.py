from portal.apps import RoomsConfig


class TicketsConfig(RoomsConfig):
    name = "tickets"

    def ready(self) -> None:
        super().ready()
        from tenants.provisioning import defaults
        from tickets.ticket import (
            fields,
            ticket_events,  # noqa: F401  # declares the types of events
        )

        defaults.declare(
            defaults.Default(
                name="ticket_priority",
                label="Priority of a new ticket",
                choices=tuple((p.value, p.label) for p in fields.Priority),
                initial=fields.Priority.NORMAL.value,
            )
        )
