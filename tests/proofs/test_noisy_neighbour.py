"""`noisy_neighbour`: small trials for real, its reports, its designs, measure and promises. No time is asserted."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delivery.queues import message_handling
from delivery.queues.blast_radius import PUBLISHED
from proofs.noise import noise_figures, queue_trial, trials
from proofs.noise.closed_loop import NOISY, QUIET_TENANTS, TENANTS
from proofs.noise.designs import DESIGNS, OUR_QUEUES, OURS, WORKERS
from proofs.noise.queue_trial import NOISES, PHASES
from proofs.noise.trials import Plan
from tests.support import commands, queue_simulation


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What our own design did against the noises that tell most by counts."""
    plans = [Plan(OURS, noise, 1, 1.0) for noise in ("hang", "kill")]
    return {seen["plan"]["noise"]: seen for seen in trials.carry_out_all(queue_trial.__name__, plans, at_a_time=2)}


def test_every_request_of_a_quiet_tenant_is_answered_whatever_hangs_and_whoever_dies(found: dict[str, Any]) -> None:
    for noise in ("hang", "kill"):
        counted = [request for request in noise_figures.requests(found[noise]) if request.tenant != NOISY]
        assert {request.how for request in counted} == {"answered"}
        assert {request.tenant for request in counted} == set(QUIET_TENANTS)
        assert {request.phase for request in counted} == set(PHASES)


def test_a_tenant_never_has_more_at_work_than_its_cap(found: dict[str, Any]) -> None:
    notes = found["hang"]["notes"]
    assert notes["most_in_all"] <= 6 + 2  # with what is lent while answers are quick
    assert notes["most_at_a_worker"] <= 2


def test_poison_kills_workers_and_none_that_its_tenant_does_not_reach(found: dict[str, Any]) -> None:
    figures = noise_figures.figures(found["kill"])
    assert (figures["deaths"] > 0, figures["killed_elsewhere"]) == (True, 0)


def test_the_command_carries_out_each_trial_and_writes_both_reports(
    found: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(module: str, plans: list[Plan], *, at_a_time: int) -> Iterator[dict[str, Any]]:
        """What was seen of one noise, as if each trial had shown it."""
        for plan in plans:
            yield {**found["hang"], "plan": plan._asdict()}

    monkeypatch.setattr(trials, "carry_out_all", again)
    machines, people = tmp_path / "found.json", tmp_path / "found.html"
    ended = commands.run("noisy_neighbour", "--design=one", "--seconds=1", "--json", machines, "--html", people)
    assert ended.status == 0, ended.err
    assert "nothing was promised of what was tried" in ended.out
    report = json.loads(machines.read_text())
    assert [(one["noise"], one["design"]) for one in report["summaries"]] == [(noise, "one") for noise in NOISES]
    page = people.read_text()
    assert "<th>p95</th>" in page
    assert page.count("<td>20</td><td>noisy</td>") == len(NOISES)
    assert page.count("<svg viewBox") == len(NOISES)
    assert not re.search(r"<script|https?://|src=|@import", page)


def test_ctrl_c_ends_it_with_a_sentence() -> None:
    process = commands.start("noisy_neighbour", "--design=one", "--seconds=60", DEBUG="1")
    assert process.stdout
    assert process.stdout.readline().startswith("4 trials")
    process.send_signal(signal.SIGINT)
    ended = commands.finish(process)
    assert (ended.status, "Nothing is left behind." in ended.err) == (130, True)


def test_the_slides_table_is_theirs() -> None:
    sets = {tenant: frozenset(processors) for tenant, processors in PUBLISHED.items()}
    assert all(len(processors) == 3 for processors in sets.values())
    assert sets[6] == sets[10], "two tenants of theirs have the same three"
    assert sum(bool(sets[NOISY] & sets[tenant]) for tenant in QUIET_TENANTS) == 13
    assert DESIGNS["shuffle"].sharing() == {tenant for tenant in QUIET_TENANTS if sets[NOISY] & sets[tenant]}
    assert len(DESIGNS["simple"].sharing()) == 2
    assert len(DESIGNS["one"].sharing()) == 19


def test_of_our_own_design_no_tenant_reaches_more_than_half_of_the_workers() -> None:
    ours = DESIGNS[OURS]
    assert all(len(ours.reach(tenant)) <= WORKERS // 2 for tenant in ours.queues_of)
    assert all(len(set(ours.queues_of[NOISY]) & set(ours.queues_of[tenant])) <= 2 for tenant in QUIET_TENANTS)


def seen(took: dict[str, float], **more: Any) -> dict[str, Any]:
    """A trial in which each request of each tenant took so many seconds, by phase."""
    requests = [
        [phase, tenant, 0, number, at + number, took[phase], "answered"]
        for at, phase in ((0, "quiet"), (20, "noisy"), (40, "cooldown"))
        for tenant in range(1, NOISY + 1)
        for number in range(10)
    ]
    plan = {"name": OURS, "noise": "load", "run": 1, "seconds": 20.0}
    began = {"quiet": 0.0, "noisy": 20.0, "cooldown": 40.0}
    return {"plan": plan, "requests": requests, "notes": {"deaths": []}, "began": began} | more


def test_the_same_requests_are_compared_and_the_first_of_each_phase_are_not() -> None:
    trial = seen({"quiet": 0.2, "noisy": 0.3, "cooldown": 0.2})
    for request in trial["requests"]:
        if request[0] == "noisy" and request[3] < 5:
            request[5] = 100.0
    figures = noise_figures.figures(trial)
    assert (figures["p99_ratio"], figures["mean_ratios"]) == (1.5, dict.fromkeys(QUIET_TENANTS, 1.5))


def test_a_request_that_nobody_answered_counts_with_the_time_for_which_it_was_waited_for() -> None:
    trial = seen({"quiet": 0.2, "noisy": 0.2, "cooldown": 0.2})
    last = next(r for r in trial["requests"] if r[0] == "noisy" and r[1] == 7 and r[3] == 9)
    last[5:] = [20.0, "unanswered"]
    figures = noise_figures.figures(trial)
    assert (figures["unanswered"], figures["p99_ratio"]) == (1, 100.0)
    assert [tenant for tenant, mean in figures["mean_ratios"].items() if mean > 1.1] == [7]


def test_each_tenant_has_the_columns_of_the_slides_test() -> None:
    trial = seen({"quiet": 0.2, "noisy": 0.2, "cooldown": 0.2})
    slow, silent = (next(r for r in trial["requests"] if (r[0], r[1], r[3]) == ("noisy", 7, n)) for n in (8, 9))
    slow[5], silent[5:] = 0.4, [1.0, "unanswered"]
    figures = noise_figures.figures(trial)
    counted = sum(request.tenant == 7 and request.phase == "noisy" for request in noise_figures.requests(trial))
    rows = {(row.pop("tenant"), row.pop("phase")): row for row in figures["tenants"]}
    assert rows[7, "noisy"] == {
        "requests": counted, "mean": round((200.0 * (counted - 2) + 400 + 1000) / counted, 1),
        "p50": 200.0, "p90": 1000.0, "p95": 1000.0, "p99": 1000.0, "min": 200.0, "max": 1000.0,
        "errors_percent": round(100 / counted, 2), "per_second": counted / 20,
    }  # fmt: skip
    assert rows["all", "noisy"]["requests"] == 20 * counted


def kept(noise: str, trial: dict[str, Any], one: float = 10.0) -> list[bool]:
    found = {noise: noise_figures.summary([noise_figures.figures(trial)], [{"per_second": one}])}
    return [promise["kept"] for promise in noise_figures.judge(found, seconds=20.0)]


def test_a_promise_is_missed_when_the_neighbour_is_noticed_or_too_little_is_done() -> None:
    calm = seen({"quiet": 0.2, "noisy": 0.2, "cooldown": 0.2})
    assert kept("load", calm) == [True, True, True]
    assert kept("load", calm, one=20.0) == [True, True, False]
    assert kept("load", seen({"quiet": 0.2, "noisy": 0.25, "cooldown": 0.2})) == [False, False, True]


def test_a_hang_may_be_felt_while_the_first_deliveries_hang_and_by_so_many_requests() -> None:
    for noisy_ones, promises in ((0.2, [True, True, True, True]), (0.5, [False, False, False, True])):
        trial = seen({"quiet": 0.2, "noisy": noisy_ones, "cooldown": 0.2})
        trial["plan"]["noise"] = "hang"
        assert kept("hang", trial) == promises
    first = [r for r in trial["requests"] if r[0] == "noisy" and r[4] < trial["began"]["noisy"] + 20 / 3]
    for request in trial["requests"]:
        request[5] = 0.5 if request in first[:30] else 0.2
    assert kept("hang", trial) == [True, True, True, True]


def test_a_promise_is_missed_when_somebody_dies_whom_the_poison_should_not_reach() -> None:
    reach = sorted(DESIGNS[OURS].reach(NOISY))
    outside = next(worker for worker in range(WORKERS) if worker not in reach)
    trial = seen({"quiet": 0.2, "noisy": 0.2, "cooldown": 0.2}, notes={"deaths": [[reach[0], 25.0, [NOISY]]]})
    assert kept("kill", trial) == [True, True, True, True]
    trial["notes"]["deaths"].append([outside, 26.0, [NOISY]])
    assert kept("kill", trial) == [False, True, True, True]


def test_without_a_name_every_design_meets_every_noise_and_ours_three_times() -> None:
    every = noise_figures.plans("", 30.0)
    met = {(design, noise) for design in DESIGNS for noise in NOISES}
    assert {(plan.name, plan.noise) for plan in every} == met
    assert sum(plan.name == OURS and plan.noise == "load" for plan in every) == 3


def test_the_other_designs_have_shorter_phases_that_still_tell_of_times() -> None:
    for asked, others in ((38.0, 16.0), (12.0, 10.0), (3.0, 3.0)):
        plans = noise_figures.plans("", asked)
        assert {plan.seconds for plan in plans if plan.name == OURS} == {asked}
        assert {plan.seconds for plan in plans if plan.name != OURS} == {others}


# --- how long a hang is felt, in simulated time ---


class _HangingRun(queue_simulation.Run):
    """A phase of our design in which each delivery of the noisy tenant hangs for so many seconds, and fails."""

    hangs = 0.0

    def _start(self, worker: int, request: Any) -> None:
        if request.tenant == self.noisy and self.hangs:
            request.work = self.hangs
        super()._start(worker, request)

    def _answer(self, worker: int, request: Any) -> None:
        if request.tenant == self.noisy and self.hangs:
            self.sender.over(str(request.number), 0, queue_simulation.RECEIVER, failed=True)
        super()._answer(worker, request)


def delayed(monkeypatch: pytest.MonkeyPatch, *, hangs: float, seconds: float) -> int:
    """How many requests of quiet tenants take 0.2 s longer than the same ones without poison."""
    monkeypatch.setattr(queue_simulation, "PHASE_SECONDS", seconds)
    design, noisy = queue_simulation.ours(len(TENANTS), OUR_QUEUES), NOISY - 1
    quiet, beside = _HangingRun(design, noisy, 1), _HangingRun(design, noisy, queue_simulation.NOISY_SENDERS)
    beside.hangs = hangs
    before, after = quiet.run(), beside.run()
    pairs = [pair for tenant in range(noisy) for pair in zip(before[tenant], after[tenant], strict=False)]
    return sum(took > alone + noise_figures.DELAYED_SECONDS for alone, took in pairs)


@pytest.mark.parametrize("hangs", [8.0, message_handling.DELIVERY_SECONDS])
def test_a_hang_delays_so_many_requests_of_others_however_long_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, hangs: float
) -> None:
    brief, long = (delayed(monkeypatch, hangs=hangs, seconds=seconds) for seconds in (2 * hangs, 5 * hangs))
    assert brief <= noise_figures.DELAYED
    assert long <= brief + 2, "those that hang later come one at a time, and are not felt"
