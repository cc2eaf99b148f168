"""Which tests one process of `make test` runs one after the other: those of a file, and those that share what is dear.

A server with its browser, and the engines other than the embedded one, take seconds of processor time to start. Files
that ask for the same ones go to the same process, so that each is started once; so do files that ask for the used
desk, which takes seconds to be used. Files that mostly wait, for leases to end and for workers to come back, go to one
process too, so that the others have work for the processor meanwhile.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

TESTS = Path(__file__).parent.parent
BROWSER = "tests/browser/"
ENGINES = "tests.support.engines"
USED_DESK = "tests.support.used_desk"
# What stands in a file that asks for what is dear, by the name of its group.
ASKING = {ENGINES: f'pytest_plugins = ["{ENGINES}"]', USED_DESK: "used_desk."}
# How the names of the files begin that wait most of their time: beside each other they would leave processors idle.
WAITING = ("tests/consuming/", "tests/engines/test_demo", "tests/proofs/test_torture", "tests/streams/test_run_stream")


class SharedScheduling(LoadFileScheduling):
    """Gives out files, but all that share what is dear as if they were one."""

    _groups: ClassVar[dict[str, str]] = {  # by file, where it has one
        path.relative_to(TESTS.parent).as_posix(): group
        for path in TESTS.rglob("test_*.py")
        for group, mark in ASKING.items()
        if mark in path.read_text()
    }

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        gone = [start for start in WAITING if not any(TESTS.parent.glob(f"{start}*"))]
        if gone:
            raise pytest.UsageError(f"tests/support/scheduling.py names as waiting what is not there: {gone}")

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return BROWSER if file.startswith(BROWSER) else self._groups.get(file, file)

    def _assign_work_unit(self, node: WorkerController) -> None:
        waits = node is self.nodes[0]
        for scope in self.workqueue:
            if scope.startswith((ENGINES, *WAITING)) == waits:
                self.workqueue.move_to_end(scope, last=False)
                break
        super()._assign_work_unit(node)
