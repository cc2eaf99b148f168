"""`python -m benchmarks`: fill, count, measure, compare. See README.md for how to read what it says.

Exit status: 0 done; 1 nothing could be measured; 2 wrong usage; 130 stopped by Ctrl-C. Times never fail a run: they
are the machine's as much as ours.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import django

from benchmarks import stack
from benchmarks.stack import KEPT, MOST_AT_ONCE, SMALLEST, say
from portal.engines.engine_process import ENGINES, EngineError
from portal.management.command import whole_number
from proofs.portal_server import DoesNotAnswer

INTERRUPTED = 130  # 128 + SIGINT, as a shell counts it


def main() -> int:
    options = arguments(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with stack.engine(options.engine) as engine:
            # Settings and models read the environment, which names the engine only now.
            django.setup()
            from benchmarks import runner

            runner.run(options, engine)
            return 0
    except (EngineError, stack.BenchmarkError, DoesNotAnswer) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped.")
        return INTERRUPTED


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What pages cost.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )  # fmt: skip
    positive = whole_number(1)
    parser.add_argument("--tickets", type=whole_number(SMALLEST), default=1000, metavar="N", help="of the tenant")
    parser.add_argument("--requests", type=positive, default=300, metavar="N", help="of each page and concurrency")
    parser.add_argument("--concurrency", type=positive, default=4, metavar="N", help="requests at once, beside one")
    parser.add_argument("--engine", choices=[*ENGINES], default="dynamodb-local", help="which to measure on")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--against", type=Path, default=KEPT, metavar="FILE", help="compare with the figures there")
    parser.add_argument("--keep-as-release", action="store_true", help="keep the figures in benchmarks/release.json")
    parser.add_argument("--profile", metavar="PAGE", help="profile one page instead of measuring")
    options = parser.parse_args(argv)
    if options.concurrency > (most := min(MOST_AT_ONCE, options.tickets // 100)):
        parser.error(f"--concurrency is at most {most} with {options.tickets} tickets")
    return options


if __name__ == "__main__":
    sys.exit(main())
