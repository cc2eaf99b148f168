"""`manage.py noisy_neighbour`: one tenant's noise against nineteen others, in five designs, on real queues."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from portal.management.command import PortalCommand, Progress
from portal.management.option_types import number
from proofs import experiment_report
from proofs.noise import floods, noise_report, trials
from proofs.noise.designs import DESIGNS
from proofs.noise.noise_report import Experiment
from proofs.noise.trial import Plan
from proofs.noise.workload import COOLDOWN_SHARE

SECONDS = 30.0  # with which all of it takes a quarter of an hour, and the floods are judged
START_SECONDS = 7.0  # that engine and processes of a trial take, about


class Command(PortalCommand):
    help = (
        "Measure what a noisy tenant does to nineteen others: quiet, noisy and cooldown as in the slides on shuffle "
        "sharding, on real queues, which it starts itself. Four noises: load, a slow receiver, poison that hangs, and "
        "poison that kills its worker. Two trials run at a time; with the default it takes a quarter of an hour, on a "
        "machine that has nothing else to do. Then two floods at the door of a portal: of page requests, and of ticket "
        "writes. "
        "Exit status: 0 every promise is kept; 1 one is not, or it failed; 2 wrong usage; 130 stopped."
    )
    again = "Nothing is left behind."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--design",
            choices=list(DESIGNS),
            default="",
            metavar="NAME",
            help=f"this one beside the single queue: {', '.join(DESIGNS)} (all)",
        )
        parser.add_argument(
            "--seconds",
            type=number(1, 600, "a number of seconds from 1 to 600"),
            default=SECONDS,
            metavar="N",
            help="of the quiet and the noisy phase of our design (%(default)g); the other designs have shorter ones",
        )
        parser.add_argument("--part", choices=["queues", "floods"], help="one half of it (both; queues with --design)")
        experiment_report.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        experiment = Experiment(options["seconds"])
        if options["part"] != "floods":
            self._try_queues(experiment, trials.plans(options["design"], options["seconds"]))
        if options["part"] == "floods" or not (options["part"] or options["design"]):
            self._flood(experiment)
        found = noise_report.document(experiment)
        experiment_report.conclude(
            found, self.stdout, options, to_json=noise_report.to_json, to_html=noise_report.to_html
        )

    def _try_queues(self, experiment: Experiment, plans: list[Plan]) -> None:
        self.stdout.write(f"{len(plans)} trials, {trials.AT_A_TIME} at a time: {_minutes(plans)} minutes or so.")
        self.stdout.flush()
        with Progress(self, "Trials", len(plans)) as progress:
            for seen in trials.carry_out_all(plans, lambda plan: progress.advance()):
                progress.say(experiment.add(seen))

    def _flood(self, experiment: Experiment) -> None:
        with Progress(self, "Floods", len(floods.FLOODS)) as progress:
            for found in floods.carry_out_all(experiment.seconds):
                progress.say(experiment.add_flood(found))
                progress.advance()


def _minutes(plans: list[Plan]) -> int:
    phases = 2 + COOLDOWN_SHARE
    return max(1, round(sum(plan.seconds * phases + START_SECONDS for plan in plans) / trials.AT_A_TIME / 60))
