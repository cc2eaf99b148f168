"""Carry out one trial on an engine of its own: `python -m proofs.noise.trial_process MODULE PLAN FILE`.

It writes what the module's `carry_out` saw to the file, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Final

from portal.engines.endpoint import point_at
from portal.engines.engine_process import start_engine

# A trial has some hundred threads, most of which wait. One that wakes should not wait for another's turn as well: the
# interpreter's 5 ms would be a part of what is measured.
_SWITCH_SECONDS: Final = 0.0005


def main(module: str, specification: str, path: Path) -> None:
    sys.setswitchinterval(_SWITCH_SECONDS)
    with start_engine(report=lambda _: None) as engine:
        point_at(engine.endpoint_url, os.environ)
        os.environ.update(SQS_ENDPOINT_URL=engine.endpoint_url, DJANGO_SETTINGS_MODULE="portal.settings", DEBUG="1")
        import django

        django.setup()
        from proofs.noise.closed_loop import Plan

        seen = importlib.import_module(module).carry_out(Plan(**json.loads(specification)))
    path.write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    os._exit(0)  # threads that hang, or wait at the engine, are left behind
