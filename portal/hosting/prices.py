"""Compute what a stack costs in a month before anybody uses it: the part that does not depend on traffic.

The prices are AWS's on-demand prices in us-east-1, in dollars, as we noted them on `NOTED`, without AWS's own list at
hand; docs/deploy.md says how to check them. The cost of use is in docs/costs.md, by page and command.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from portal.hosting.web_service import BIG, SMALL

NOTED: Final = date(2026, 11, 26)
HOURS: Final = 730  # of a month, as AWS counts it
CPU_HOUR: Final = {"x86_64": 0.04048, "arm64": 0.03238}  # of one vCPU on Fargate
GB_HOUR: Final = {"x86_64": 0.004445, "arm64": 0.00356}
BALANCER_HOUR: Final = 0.0225
CAPACITY_HOUR: Final = 0.008  # of one capacity unit of a load balancer
ADDRESS_HOUR: Final = 0.005  # of one public IPv4 address
NAT_HOUR: Final = 0.045
READ_UNIT, WRITE_UNIT = 0.125e-6, 0.625e-6  # of tables on demand
RESTORED_GB = 0.15  # of a table that is restored
STORED_GB = 0.25  # a month
FIREWALL, FIREWALL_RULE = 5.0, 1.0  # a month
SECRET, KEY, ALARM, DASHBOARD = 0.40, 1.0, 0.10, 3.0  # a month


@dataclass(frozen=True)
class BillLine:
    """One line of a bill: a month's dollars."""

    what: str
    count: str
    dollars: float


def month(size: str, processor: str = "x86_64", *, alarms: int = 0, own_network: bool = True) -> list[BillLine]:
    """Return the lines of a month's bill for the fewest tasks of a size."""
    large = size == "large"
    cpu, memory, _, tasks, _ = BIG if large else SMALL
    task = HOURS * (cpu / 1024 * CPU_HOUR[processor] + memory / 1024 * GB_HOUR[processor])
    addresses = 2 + (0 if large else tasks)  # the load balancer has one in each zone
    lines = [
        BillLine("web tasks on Fargate", f"{tasks} of {cpu / 1024:g} vCPU and {memory / 1024:g} GB", tasks * task),
        BillLine("load balancer", "1, with one capacity unit", HOURS * (BALANCER_HOUR + CAPACITY_HOUR)),
        BillLine("firewall", "1, with one rule", FIREWALL + FIREWALL_RULE),
        BillLine("secrets", "3", 3 * SECRET),
        BillLine("key of the tables", "1", KEY),
        BillLine("dashboard", "1; the first three of an account are free", DASHBOARD),
    ]
    if alarms:
        lines.append(BillLine("alarms", str(alarms), alarms * ALARM))
    if own_network and large:
        lines.append(BillLine("NAT gateways", "2, each with a public address", 2 * HOURS * (NAT_HOUR + ADDRESS_HOUR)))
    if own_network:
        lines.append(BillLine("public addresses", str(addresses), addresses * HOURS * ADDRESS_HOUR))
    return lines


def drill(size: int, *, reads: float, writes: float, seconds: float) -> list[BillLine]:
    """Return what it costs to restore tables of `size` bytes, keep them for some seconds, and read and write units."""
    gigabytes, months = size / 2**30, seconds / 3600 / HOURS
    return [
        BillLine("restore", f"{gigabytes:,.2f} GB", gigabytes * RESTORED_GB),
        BillLine("storage", f"for {seconds / 3600:,.1f} hours", gigabytes * STORED_GB * months),
        BillLine(
            "verification", f"{reads:,.0f} read and {writes:,.0f} write units", reads * READ_UNIT + writes * WRITE_UNIT
        ),
    ]


def total(lines: list[BillLine]) -> float:
    return sum(line.dollars for line in lines)


def alarms_of(template: dict[str, Any]) -> int:
    """Return how many alarms a template has, for those of workers as functions."""
    conditions = [one.get("Condition", "") for one in template["Resources"].values() if "Alarm" in one["Type"]]
    return sum("Pollers" not in condition for condition in conditions)


# --- what the use of a desk costs beside capacity units ---

MAIL = 0.10e-3  # of one recipient, Amazon SES
QUEUE_REQUEST = 0.40e-6  # Amazon SQS, standard queues
QUEUE_REQUESTS = 3  # of a message: sent, received, deleted
FILE_GB = 0.023  # a month, Amazon S3 standard
FILE_READ = 0.40e-6  # one GetObject
OUT_GB = 0.09  # from S3 to the internet
