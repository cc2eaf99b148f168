"""Alarms watch what processes and AWS really say, and are there only where somebody is named who hears them."""

from __future__ import annotations

from typing import Any

from delivery.queues.deployment import QUEUES
from portal.deployment import parts
from portal.deployment.template import template
from portal.load import reporting


def declared() -> dict[str, Any]:
    return {n: r for n, r in template()["Resources"].items() if r["Type"] == "AWS::CloudWatch::Alarm"}


def watched(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    properties = alarm["Properties"]
    if "Metrics" not in properties:
        return [properties]
    return [one["MetricStat"]["Metric"] for one in properties["Metrics"] if "MetricStat" in one]


def test_each_alarm_over_our_metrics_names_one_that_processes_say_with_the_same_dimensions() -> None:
    said = {
        (name, *sorted(dimensions))
        for values in (
            dict.fromkeys(reporting.METRICS.values(), "Count"),
            {reporting.LAG: "Seconds", reporting.DUE_LAG: "Seconds"},
            {reporting.DEARER: "Count"},
            reporting.ANSWERS,
        )
        for directive in reporting.document("web", dict.fromkeys(values, 0.0), values, 0)["_aws"]["CloudWatchMetrics"]
        for name in values
        for dimensions in directive["Dimensions"]
    }
    ours = [one for alarm in declared().values() for one in watched(alarm) if one["Namespace"] == "Pooldesk"]
    named = {(one["MetricName"], *sorted(d["Name"] for d in one["Dimensions"])) for one in ours}
    assert named <= said
    of_load = {"Throttles", "Requests", "RequestsRefused", "DeadLetters", "DearerRoutes", "DueLag", "StreamLag"}
    assert {name for name, *_ in named} == of_load | reporting.ANSWERS.keys()


def test_there_are_alarms_for_each_queue_and_for_each_follower_of_a_stream_however_it_runs() -> None:
    kinds = [(one["MetricName"], alarm["Condition"]) for alarm in declared().values() for one in watched(alarm)]
    assert kinds.count(("ApproximateAgeOfOldestMessage", parts.WANTED)) == QUEUES
    assert kinds.count(("IteratorAge", parts.WANTED_OF_FUNCTIONS)) == 2
    assert kinds.count(("StreamLag", parts.WANTED_OF_POLLERS)) == 2


def test_no_alarm_is_made_where_nobody_hears_it_and_all_go_to_the_topic() -> None:
    conditions = template()["Conditions"]
    assert conditions[parts.WANTED] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "AlarmTopic"}, "none"]}]}
    for name, alarm in declared().items():
        assert alarm["Condition"].startswith(parts.WANTED), name
        assert alarm["Properties"]["AlarmActions"] == [{"Ref": "AlarmTopic"}], name


def test_silence_rings_for_pollers_alone() -> None:
    silent = {n for n, alarm in declared().items() if alarm["Properties"]["TreatMissingData"] == "breaching"}
    assert silent == {"StreamWorkerLagAlarm", "DispatcherLagAlarm"}
