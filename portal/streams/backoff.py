"""Wait before something is tried again.

Source: AWS Architecture Blog, "Exponential Backoff And Jitter" (full jitter).
"""

from __future__ import annotations

import random
from typing import Final

FIRST_SECONDS: Final = 0.1
LAST_SECONDS: Final = 5.0
_jitter = random.SystemRandom()


def delay(failures: int) -> float:
    """Return seconds to wait after so many failures in a row: full jitter, so that pollers do not all come at once."""
    return _jitter.uniform(0, min(LAST_SECONDS, FIRST_SECONDS * 2 ** min(failures, 16)))
