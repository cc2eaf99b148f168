#!/usr/bin/env python
"""Django's command line for Pooldesk."""

import gc
import os
import signal
import sys
from pathlib import Path

# Modules and what a command reads are no garbage; to look for some as often as usual takes a sixth of a start.
gc.set_threshold(50_000, 20, 50)
VENV = Path(__file__).resolve().parent / ".venv"

try:
    from portal.engines import discovery
    from portal.engines.engine_process import EngineError
    from portal.management import without_sql
except ModuleNotFoundError as missing:
    python = VENV / "bin" / "python"
    if __name__ != "__main__" or (missing.name or "").partition(".")[0] == "portal":
        raise
    if VENV in (Path(sys.prefix), Path(sys.executable).parent.parent) or not python.exists():
        sys.exit(f"Pooldesk's packages are not installed here ({missing.name}): `make run` installs them.")
    # A shell's own Python has none of the packages that make has installed.
    os.execv(python, [str(python), *sys.argv])  # noqa: S606  # this very command, as it was typed


def main() -> None:
    """Run the command on the engine of `make run`, where that runs and no other endpoint is given."""
    if instead := without_sql.sentence(sys.argv):
        sys.exit(instead)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    try:
        discovery.prepare(sys.argv, Path(__file__).resolve().parent, environ=os.environ, say=_tell)
    except EngineError as error:
        sys.exit(str(error))

    try:
        from django.core.management import execute_from_command_line

        try:
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # `head`, or another program that reads the output, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except KeyboardInterrupt:  # while its modules are loaded; a command at work says itself how to go on
        _tell("Stopped.")
        sys.exit(130)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
