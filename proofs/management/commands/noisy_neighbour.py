"""`manage.py noisy_neighbour`: one tenant's noise against nineteen others, in four designs, on real queues."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import CommandParser
from django.utils.html import format_html_join

from delivery.queues import limits
from portal.management.command import PortalCommand, Progress, number
from proofs import proof_report
from proofs.noise import closed_loop, flood_trial, noise_figures, queue_trial
from proofs.noise.closed_loop import Plan
from proofs.noise.designs import DESIGNS
from proofs.noise.noise_figures import ENOUGH_SECONDS

SECONDS: Final = 30.0  # with which all of it takes a quarter of an hour, and the floods are judged
AT_A_TIME: Final = 2  # more would measure the machine
_START_SECONDS: Final = 7.0  # that engine and processes of a trial take, about


class Command(PortalCommand):
    costs = None  # it does whatever people do
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
        proof_report.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seconds, part = options["seconds"], options["part"]
        trials = noise_figures.plans(options["design"], seconds) if part != "floods" else []
        floods = [*flood_trial.FLOODS] if part == "floods" or not (part or options["design"]) else []
        runs = self._try_queues(trials)
        flooded = self._flood([Plan(name, "flood", 1, seconds) for name in floods])
        found = _document(seconds, runs, flooded)
        drawn = {"p99 of each tenant in each phase": _plots(runs)}
        proof_report.write(options, found, title="Noisy neighbour", drawn=drawn)
        proof_report.judge(found, self.stdout)

    def _try_queues(self, plans: list[Plan]) -> dict[tuple[str, str], list[dict[str, Any]]]:
        runs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        if plans:
            phases = 2 + queue_trial.COOLDOWN_SHARE
            minutes = max(1, round(sum(plan.seconds * phases + _START_SECONDS for plan in plans) / AT_A_TIME / 60))
            self.stdout.write(f"{len(plans)} trials, {AT_A_TIME} at a time: {minutes} minutes or so.")
            self.stdout.flush()
        with Progress(self, "Trials", len(plans)) as progress:
            for seen in closed_loop.carry_out_all(queue_trial.__name__, plans, at_a_time=AT_A_TIME):
                plan, one = seen["plan"], noise_figures.figures(seen)
                runs[plan["noise"], plan["name"]].append(one)
                worst = max(one["mean_ratios"].values(), default=0)
                progress.say(
                    f"{plan['noise']:5} {plan['name']:8} run {plan['run']}: p99 ratio {one['p99_ratio']:.3f}, worst "
                    f"mean {worst:.3f}, {one['per_second']:.1f}/s, {one['deaths']} deaths, "
                    f"lag {one['lag_p99_ms']:.0f} ms"
                )
                progress.advance()
        return runs

    def _flood(self, plans: list[Plan]) -> list[dict[str, Any]]:
        """Return the figures of each flood. They run one after the other, so that none is the other's noise."""
        found = []
        with Progress(self, "Floods", len(plans)) as progress:
            for one in closed_loop.carry_out_all(flood_trial.__name__, plans, at_a_time=1):
                found.append(one)
                progress.say(
                    f"{one['name']:6} p99 ratio {one['p99_ratio']:.3f}, {one['quiet_refused']} of "
                    f"{one['quiet_requests']} quiet requests refused, "
                    f"{one['through_share']:.3f} of the budget let through"
                )
                progress.advance()
        return found


def _document(
    seconds: float, runs: dict[tuple[str, str], list[dict[str, Any]]], floods: list[dict[str, Any]]
) -> dict[str, Any]:
    summaries = {key: noise_figures.summary(several) for key, several in runs.items()}
    judged = noise_figures.judge(summaries, with_times=seconds >= ENOUGH_SECONDS)
    for flood in floods:
        judged += noise_figures.judge_flood(flood, seconds=seconds)
    promises = [promise.document() for promise in judged]
    missed = sum(not promise["kept"] for promise in promises)
    verdict = "Measured; nothing was promised of what was tried."
    if promises:
        kept = f"{missed} of {len(promises)} promises are not kept."
        verdict = kept if missed else f"All {len(promises)} promises are kept."
    short = "" if seconds >= ENOUGH_SECONDS else f" Phases under {ENOUGH_SECONDS:g} s say nothing about times."
    return {
        "verdict": verdict + short,
        "holds": not missed,
        "promises": promises,
        "phase_seconds": seconds,
        "limits": asdict(limits.of_all("")),
        "designs": [{"name": name, **design.document()} for name, design in DESIGNS.items()],
        "summaries": [{"noise": noise, "design": name, **one} for (noise, name), one in summaries.items()],
        "floods": floods,
        "cores": os.cpu_count(),
        "runs": [{"noise": noise, "design": name, **run} for (noise, name), several in runs.items() for run in several],
    }


def _plots(runs: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    return format_html_join(
        "\n",
        "<figure><figcaption>{}, {}</figcaption>{}</figure>",
        (
            (noise, name, noise_figures.plot(several[0]["tenants"], f"{noise}, {name}"))
            for (noise, name), several in runs.items()
        ),
    )
