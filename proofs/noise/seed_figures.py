"""Keep the figures of the slides beside ours: 99th percentiles by tenant, in milliseconds, with one processor for all.

Source: "Serverless Shuffle Sharding" (A. Aleksandrov, AWS), the tables of step 1 and step 2, as far as they are shown.
"""

from __future__ import annotations

from typing import Final

QUIET_P99: Final = {
    1: 669, 2: 684, 3: 648, 4: 612, 5: 630, 6: 632, 7: 657, 8: 760, 9: 666, 10: 688, 11: 741, 12: 606, 13: 783,
    14: 727, 15: 664, 16: 646, 17: 743, 18: 673, 19: 619, 20: 701,
}  # fmt: skip
NOISY_P99: Final = {
    1: 990, 10: 864, 11: 1084, 12: 1032, 13: 1043, 14: 920, 15: 865, 16: 1011, 17: 1051, 18: 985, 19: 1150, 20: 1060,
}  # fmt: skip
ALL_QUIET_P99: Final = 688
ALL_NOISY_P99: Final = 1039
QUIET_PER_SECOND: Final = 46.9
NOISY_PER_SECOND: Final = 66.7
# Tenants that share a processor with the noisy one, itself counted as the slides count, of twenty.
BLAST: Final = {"one processor": 20, "simple sharding": 3, "shuffle sharding": 14}
