"""Which tests one process of `make test` runs one after the other: those of a file, and those that share what is dear.

A server with its browser, and the engines other than the embedded one, take seconds of processor time to start. Files
that ask for the same ones go to the same process, so that each is started once.
"""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadFileScheduling

TESTS = Path(__file__).parent.parent
BROWSER = "tests/browser/"
ENGINES = "tests.support.engines"


class SharedScheduling(LoadFileScheduling):
    """Gives out files, but all that share a server or engines as if they were one."""

    _of_engines = frozenset(
        path.relative_to(TESTS.parent).as_posix()
        for path in TESTS.rglob("test_*.py")
        if f'pytest_plugins = ["{ENGINES}"]' in path.read_text()
    )

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        if file.startswith(BROWSER):
            return BROWSER
        return ENGINES if file in self._of_engines else file
