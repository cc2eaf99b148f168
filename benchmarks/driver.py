"""The process that measures: `python -m benchmarks.driver PORT`, spoken to in JSON lines.

A line in is one burst: a list of sequences, each a list of requests that one connection sends one after the other. A
line out is what the burst took: {"wall": seconds, "samples": [[seconds, status], ...]} or {"error": text}. It is a
process of its own so that nothing it does takes time from the portal's Python, and it ends when its input does.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from http.client import HTTPException
from typing import Any

from benchmarks.exchange import Connection, RawRequest


def burst(port: int, sequences: list[list[RawRequest]]) -> dict[str, Any]:
    """Send all sequences at the same time, each over a connection that is open before the clock starts."""
    samples: list[list[tuple[float, int]]] = [[] for _ in sequences]
    errors: list[str] = []
    ready = threading.Barrier(len(sequences) + 1)

    def run(number: int, requests: list[RawRequest]) -> None:
        connection = None
        try:
            connection = Connection(port)
        except OSError as error:
            errors.append(f"no connection: {error}")
        ready.wait()
        if connection is None:
            return
        try:
            for request in requests:
                begun = time.perf_counter()
                answer = connection(request)
                samples[number].append((time.perf_counter() - begun, answer.status))
        except (OSError, HTTPException) as error:
            errors.append(f"{request.method} {request.path}: {type(error).__name__} {error}")
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(n, sequence), daemon=True) for n, sequence in enumerate(sequences)]
    for thread in threads:
        thread.start()
    ready.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - begun
    if errors:
        return {"error": "; ".join(errors)}
    return {"wall": wall, "samples": [sample for sequence in samples for sample in sequence]}


def main() -> None:
    port = int(sys.argv[1])
    gc.disable()  # a collection would be counted as the portal's time
    for line in sys.stdin:
        answer = burst(port, [[RawRequest(*request) for request in sequence] for sequence in json.loads(line)])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        gc.collect()


if __name__ == "__main__":
    main()
