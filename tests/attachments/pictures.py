"""Pictures as people send them, and as nobody should."""

from __future__ import annotations

import functools
import io
import struct
import zipfile
import zlib

from PIL import Image


def encoded(kind: str, width: int = 64, height: int = 48, **how: object) -> bytes:
    """Return a picture of this format."""
    made = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(made, kind, **how)
    return made.getvalue()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@functools.cache
def png(width: int, height: int) -> bytes:
    """Return a black PNG of any size, which is small as a file."""
    packer, line = zlib.compressobj(9), b"\0" * (1 + (width + 7) // 8)
    data = b"".join(packer.compress(line * 100) for _ in range(height // 100)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def animation(frames: int) -> bytes:
    """Return a GIF of many frames."""
    made = io.BytesIO()
    shown = [Image.new("L", (200, 100), color) for color in (0, 255)]
    shown[0].save(
        made, "GIF", save_all=True, append_images=[shown[n % 2] for n in range(1, frames)], duration=1, loop=0
    )
    return made.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return made.getvalue()


SCRIPT = b"<script>alert(1)</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
# A GIF whose header is a comment of JavaScript as well.
GIF_AND_SCRIPT = b"GIF89a/*" + encoded("GIF")[8:] + b"*/=1;alert(1)"
