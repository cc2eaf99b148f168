"""Make a small picture of one that somebody sent, in a process of its own that has little memory and time.

A decoder that a picture takes over would find nothing in that process: no credentials, no connection, no Django. Of the
picture nothing but its pixels comes back, as WebP: no metadata, no second content behind the first one, no animation.

Source: Pillow, "Image module" (`draft`, `MAX_IMAGE_PIXELS`), "Security".
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WIDTH, HEIGHT = 400, 300  # of the largest result, in pixels
SECONDS: Final = 10.0  # that one picture may take
MOST_PIXELS: Final = 50_000_000  # of a picture that is decoded
MOST_BYTES: Final = 250_000  # of a result
_MEMORY: Final = 600_000_000  # bytes of address space, the interpreter's included
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")
_one_at_a_time: Final = threading.Lock()  # in each process: a worker has many threads, and not much memory


@dataclass(frozen=True)
class Thumbnail:
    """A small picture. `content` is WebP."""

    content: bytes
    width: int
    height: int


def make(content: bytes, *, patience: float = SECONDS) -> Thumbnail | None:
    """Return a small picture of this one, of which an animation gives its first frame; None where it is none or is too
    large. Waits for another one at most `patience` seconds, and raises TimeoutError then."""
    if not _one_at_a_time.acquire(timeout=max(0.0, patience)):
        raise TimeoutError
    try:
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as result:
            source.write(content)
            source.seek(0)
            command = [sys.executable, "-I", __file__, _packages()]
            ended = subprocess.run(
                command, stdin=source, stdout=result, stderr=subprocess.DEVNULL, env={}, timeout=SECONDS, check=False
            )
            result.seek(0)
            size, _, made = result.read(MOST_BYTES + 100).partition(b"\n")
    except subprocess.TimeoutExpired:
        return None
    finally:
        _one_at_a_time.release()
    if ended.returncode or made[:4] != b"RIFF" or made[8:12] != b"WEBP" or len(made) > MOST_BYTES:
        return None
    width, height = (int(one) for one in size.split())
    return Thumbnail(made, min(width, WIDTH), min(height, HEIGHT))


def _packages() -> str:
    """Return the folder that has Pillow: an isolated interpreter does not look everywhere."""
    found = importlib.util.find_spec("PIL")
    if found is None or not found.origin:
        raise ModuleNotFoundError("Pillow is not installed")
    return str(Path(found.origin).parents[1])


def _limit() -> None:
    import resource

    seconds = int(SECONDS)
    for kind, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, MOST_BYTES + 100),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def _main() -> None:
    import io
    import warnings

    sys.path.append(sys.argv[1])
    from PIL import Image, ImageOps

    _limit()
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    with Image.open(sys.stdin.buffer, formats=_FORMATS) as opened:
        opened.draft("RGB", (2 * WIDTH, 2 * HEIGHT))  # a JPEG is decoded small
        picture: Image.Image = opened
        picture.thumbnail((2 * max(WIDTH, HEIGHT),) * 2, reducing_gap=2.0)
        picture = ImageOps.exif_transpose(picture)
        picture.thumbnail((WIDTH, HEIGHT))
        has_alpha = "A" in picture.getbands() or "transparency" in picture.info
        pixels = picture.convert("RGBA" if has_alpha else "RGB")
    # A new picture of the same pixels: whatever hung on the old one stays behind.
    clean = Image.frombytes(pixels.mode, pixels.size, pixels.tobytes())
    made = io.BytesIO()
    clean.save(made, "WEBP", quality=75, method=4)
    sys.stdout.buffer.write(b"%d %d\n" % clean.size + made.getvalue())


if __name__ == "__main__":
    _main()
