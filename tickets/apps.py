from portal.apps import RoomsConfig


class TicketsConfig(RoomsConfig):
    name = "tickets"

    def ready(self) -> None:
        super().ready()
        from tenants.lifecycle import desk_settings
        from tickets.desk_export import export_job, export_mails
        from tickets.ticket import (
            fields,
            ticket_events,  # noqa: F401  # declares the types of events
        )

        export_job.tell_with(export_mails.ready)
        desk_settings.declare_default(
            desk_settings.Default(
                name="ticket_priority",
                label="Priority of a new ticket",
                choices=tuple((p.value, p.label) for p in fields.Priority),
                initial=fields.Priority.NORMAL.value,
            )
        )
