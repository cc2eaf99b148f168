"""`manage.py noisy_neighbour`: one tenant's noise against nineteen others, in four designs, on real queues."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any, Final

from django.core.management.base import CommandParser
from django.utils.html import format_html_join

from portal.management.command import PortalCommand, Progress, number
from proofs import proof_report
from proofs.noise import flood_trial, noise_figures, queue_trial, trials
from proofs.noise.designs import DESIGNS, ONE, OURS
from proofs.noise.trials import Plan

SECONDS: Final = 30.0  # with which all of it takes a quarter of an hour, and the floods are judged
AT_A_TIME: Final = 2  # more would measure the machine
_START_SECONDS: Final = 7.0  # that engine and processes of a trial take, about
Runs = dict[tuple[str, str], list[dict[str, Any]]]  # figures, by noise and design


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
        names, seconds = ", ".join(DESIGNS), number(1, 600, "a number of seconds from 1 to 600")
        said = "of the quiet and the noisy phase of our design (%(default)g); the other designs have shorter ones"
        design = f"this one beside the single queue: {names} (all)"
        parser.add_argument("--design", choices=list(DESIGNS), default="", metavar="NAME", help=design)
        parser.add_argument("--seconds", type=seconds, default=SECONDS, metavar="N", help=said)
        parser.add_argument("--part", choices=["queues", "floods"], help="one half of it (both; queues with --design)")
        proof_report.add_options(parser)

    def work(self, options: dict[str, Any]) -> None:
        seconds, part = options["seconds"], options["part"]
        planned = noise_figures.plans(options["design"], seconds) if part != "floods" else []
        floods = [*flood_trial.FLOODS] if part == "floods" or not (part or options["design"]) else []
        runs = self._try_queues(planned)
        found = _document(seconds, runs, self._flood([Plan(name, "flood", 1, seconds) for name in floods]))
        drawn = format_html_join(
            "\n",
            "<figure><figcaption>{}, {}</figcaption>{}</figure>",
            ((*key, noise_figures.plot(one[0]["tenants"], ", ".join(key))) for key, one in runs.items()),
        )
        proof_report.write(options, found, title="Noisy neighbour", drawn={"p99 of each tenant in each phase": drawn})
        proof_report.judge(found, self.stdout)

    def _try_queues(self, plans: list[Plan]) -> Runs:
        runs: Runs = defaultdict(list)
        phases = 2 + queue_trial.COOLDOWN_SHARE
        minutes = max(1, round(sum(plan.seconds * phases + _START_SECONDS for plan in plans) / AT_A_TIME / 60))
        if plans:
            self.stdout.write(f"{len(plans)} trials, {AT_A_TIME} at a time: {minutes} minutes or so.")
            self.stdout.flush()
        with Progress(self, "Trials", len(plans)) as progress:
            for seen in trials.carry_out_all(queue_trial.__name__, plans, at_a_time=AT_A_TIME):
                plan, one = seen["plan"], noise_figures.figures(seen)
                runs[plan["noise"], plan["name"]].append(one)
                progress.say(
                    f"{plan['noise']:5} {plan['name']:8} run {plan['run']}: p99 ratio {one['p99_ratio']:.3f}, worst "
                    f"mean {max(one['mean_ratios'].values(), default=0):.3f}, {one['per_second']:.1f}/s, "
                    f"{one['deaths']} deaths"
                )
                progress.advance()
        return runs

    def _flood(self, plans: list[Plan]) -> list[dict[str, Any]]:
        """Return the figures of each flood. They run one after the other, so that none is the other's noise."""
        found = []
        with Progress(self, "Floods", len(plans)) as progress:
            for one in trials.carry_out_all(flood_trial.__name__, plans, at_a_time=1):
                found.append(one)
                progress.advance()
        return found


def _document(seconds: float, runs: Runs, floods: list[dict[str, Any]]) -> dict[str, Any]:
    summaries = {
        (noise, design): noise_figures.summary(several, runs.get((noise, ONE), ()))
        for (noise, design), several in runs.items()
    }
    ours = {noise: one for (noise, design), one in summaries.items() if design == OURS}
    promises = noise_figures.judge(ours | {one["name"]: one for one in floods}, seconds=seconds)
    missed = sum(not promise["kept"] for promise in promises)
    verdict = "Measured; nothing was promised of what was tried."
    if promises:
        kept = f"{missed} of {len(promises)} promises are not kept."
        verdict = kept if missed else f"All {len(promises)} promises are kept."
    enough = noise_figures.ENOUGH_SECONDS
    return {
        "verdict": verdict + ("" if seconds >= enough else f" Phases under {enough:g} s say nothing about times."),
        "holds": not missed,
        "promises": promises,
        "phase_seconds": seconds,
        "designs": {name: design.what for name, design in DESIGNS.items()},
        "summaries": [{"noise": noise, "design": name, **one} for (noise, name), one in summaries.items()],
        "floods": floods,
        "cores": os.cpu_count(),
        "runs": [{"noise": noise, "design": name, **run} for (noise, name), several in runs.items() for run in several],
    }
