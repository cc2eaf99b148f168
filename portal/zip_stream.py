"""Write a zip while it is sent."""

from __future__ import annotations

import io


class Pipe(io.RawIOBase):
    """Holds what an archive writes until it is taken. It cannot seek, so the archive writes from front to back."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[bytes] = []

    def write(self, data: bytes) -> int:  # type: ignore[override]  # zipfile writes bytes
        self._held.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        held, self._held = b"".join(self._held), []
        return held
