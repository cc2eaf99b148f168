"""Write a file atomically."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be written.

    The content is first written to a temporary file beside it. Two processes that write one file at once do not disturb
    each other: the one that ends last stays. Only its owner can read it, because such files hold what people have told
    a desk. Raises OSError."""
    number, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(number, "w+b") as place:
            yield place
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
