"""`python -m benchmarks`: fill, count, measure, compare. See README.md for how to read what it says.

Exit status: 0 done; 1 the counts of a page differ between sizes, or nothing could be measured; 2 wrong usage; 130
stopped by Ctrl-C. Times never fail a run: they are the machine's as much as ours.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import django

from benchmarks import stack
from benchmarks.stack import SMALLEST, say
from portal.engines.engine_process import ENGINES, EngineError
from proofs.portal_server import DoesNotAnswer

INTERRUPTED = 130  # 128 + SIGINT, as a shell counts it


def main() -> int:
    options = arguments(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with stack.engine(options.engine, keep=options.keep, report=say) as engine:
            # Settings and models read the environment, which names the engine only now.
            django.setup()
            from benchmarks import runner

            return runner.run(options, engine)
    except (EngineError, stack.BenchmarkError, DoesNotAnswer) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped.")
        return INTERRUPTED


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What pages cost, by number of tickets.")
    parser.add_argument("--sizes", type=_sizes, default=[1000, 10_000, 100_000], help="1000,10000,100000 if not given")
    parser.add_argument("--requests", type=int, default=300, help="of each page, size and concurrency (300)")
    parser.add_argument("--concurrency", type=int, default=4, help="requests at the same time, beside one (4)")
    parser.add_argument("--engine", choices=[*ENGINES], default="dynamodb-local", help="dynamodb-local, if not given")
    parser.add_argument("--keep", action="store_true", help="keep the filled data in var/benchmarks for the next run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--keep-as-release", action="store_true", help="keep the figures in benchmarks/release.json")
    parser.add_argument("--profile", metavar="PAGE", help="profile one page in the largest size instead of measuring")
    options = parser.parse_args(argv)
    most = min(8, options.sizes[0] // 100)  # each sequence has a group of tickets of its own
    if options.requests < 1:
        parser.error("--requests is at least 1")
    if not 1 <= options.concurrency <= most:
        parser.error(f"--concurrency is 1 to {most} with {options.sizes[0]} tickets")
    return options


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError("sizes are numbers separated by commas") from None
    if sizes[0] < SMALLEST:
        raise argparse.ArgumentTypeError(f"a tenant has at least {SMALLEST} tickets")
    return sizes


if __name__ == "__main__":
    sys.exit(main())
