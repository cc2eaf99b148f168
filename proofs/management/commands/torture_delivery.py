"""`manage.py torture_delivery`: tries to lose events, and says whether it succeeded."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import whole_number
from proofs import torture_options
from proofs.delivery import delivery_torture
from proofs.delivery.delivery_torture import DeliveryPlan


class Command(PortalCommand):
    help = (
        "Torture what leaves the desks, on the running engine: writers change the tickets of temporary tenants, "
        "dispatchers and consumers bring what they tell to a receiver on this machine, and all three are killed at any "
        "moment. Then each event that the tickets' timelines know of must have arrived, under one id, and nothing may "
        "be pending. Needs DEBUG=1 and a local engine. What each writer does follows from --seed; how the processes "
        "meet does not. Tenants and tickets are removed in the end; rows of the outbox stay until their TTL. "
        "Exit status: 0 all arrived; 1 something was lost, came under two ids or too often, or is pending."
    )
    again = "What it has made may be left behind, in tenants whose names begin with torture."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--events", type=whole_number(1), default=2_000, metavar="N", help="to write (%(default)s)")
        parser.add_argument(
            "--kills", type=whole_number(0), default=12, metavar="K", help="of all processes (%(default)s)"
        )
        parser.add_argument("--tenants", type=whole_number(1), default=6, metavar="T", help="to write in (%(default)s)")
        parser.add_argument("--writers", type=whole_number(1), default=2, metavar="W", help="at a time (%(default)s)")
        parser.add_argument(
            "--dispatchers", type=whole_number(1), default=2, metavar="D", help="at a time (%(default)s)"
        )
        parser.add_argument("--consumers", type=whole_number(1), default=2, metavar="C", help="at a time (%(default)s)")
        torture_options.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seed = torture_options.seed_of(options, self.stdout)
        numbers = ("events", "kills", "tenants", "writers", "dispatchers", "consumers")
        plan = DeliveryPlan(seed=seed, **{name: options[name] for name in numbers})
        with delivery_torture.torture(plan) as run:
            delivery_torture.make_tenants(run)
            try:
                with Progress(self, "Writing", plan.events) as progress:
                    delivery_torture.write(run, progress.advance)
                    delivery_torture.drain(run, progress.label)
                found = delivery_torture.figures(run)
                torture_options.write_figures(found, options)
                self._say(found)
            finally:
                delivery_torture.remove(run)

    def _say(self, found: dict[str, Any]) -> None:
        kills = ", ".join(f"{count} of a {role}" for role, count in sorted(found["kills"].items())) or "none"
        self.stdout.write(
            f"{found['events']} events, {found['arrivals']} arrivals, {found['doubles']} of them again under the same "
            f"id; {found['refused_by_the_receiver']} refused by the receiver and tried again; kills: {kills}."
        )
        wrong = [
            sentence
            for sentence, is_wrong in (
                (f"Lost: {found['lost'][:5]}", found["lost"]),
                (f"Never happened: {found['unexpected'][:5]}", found["unexpected"]),
                (f"Under two ids: {found['under_two_ids'][:5]}", found["under_two_ids"]),
                (f"{found['pending']} rows are pending", found["pending"]),
                (f"{found['doubles']} doubles are too many", found["doubles"] > found["doubles_allowed"]),
            )
            if is_wrong
        ]
        if wrong:
            raise CommandError(f"{'; '.join(wrong)}. Keep the seed.")
        self.stdout.write("Each event has arrived, and nothing is pending.")
