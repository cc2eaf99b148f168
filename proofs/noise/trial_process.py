"""Be the process of one trial: start an engine, carry the trial out, write what was seen to a file as JSON.

python -m proofs.noise.trial_process '{"design": "ours", "noise": "load", "run": 1, "seconds": 30}' FILE
"""

from __future__ import annotations

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


def main(specification: str, path: Path) -> None:
    """Carry out the trial that the text describes."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    with start_engine(report=lambda _: None) as engine:
        point_at(engine.endpoint_url, os.environ)
        os.environ.update(SQS_ENDPOINT_URL=engine.endpoint_url, DJANGO_SETTINGS_MODULE="portal.settings", DEBUG="1")
        import django

        django.setup()
        from proofs.noise.trial import Plan, carry_out

        seen = carry_out(Plan(**json.loads(specification)))
    path.write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
    # What hangs, or waits at the engine, is left behind in threads that would be joined.
    os._exit(0)
