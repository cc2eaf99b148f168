"""`manage.py hot_spots`: how even suffixes are, what is throttled without and with them, what reading them costs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from proofs import cleanup, experiment_report
from proofs.hot_spots import hot_spot_report
from proofs.hot_spots.hot_spot_report import QUICK, HotSpotPlan


class Command(PortalCommand):
    help = (
        "Measure hot spots: the skew of suffix functions; what DynamoDB would throttle of a tenant that writes 4,000 "
        "times a second, by a simulation with its bounds for a partition, which the product's own sharding drives; and "
        "the price of a page of the queue with 1 to 16 shards, on the running engine. Some minutes. Needs DEBUG=1 and "
        "a local engine; what it writes there, it deletes. "
        "Exit status: 0 every promise is kept; 1 one is not, or it failed; 2 wrong usage; 130 stopped."
    )
    again = "Nothing is left behind."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--quick", action="store_true", help="fewer and larger writes, fewer tickets: seconds, the same promises"
        )
        experiment_report.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        cleanup.refuse_in_production()
        plan = HotSpotPlan(settings.HOT_PARTITION_UNITS, **(QUICK if options["quick"] else {}))
        with Progress(self, "Measuring", hot_spot_report.steps(plan)) as progress:
            seen = hot_spot_report.measure(plan, progress.advance)
        found = hot_spot_report.document(seen)
        experiment_report.conclude(
            found, self.stdout, options, to_json=hot_spot_report.to_json, to_html=hot_spot_report.to_html
        )
