"""Name the version of this code, in this place alone. CHANGELOG.md begins with its section; `make release` tags it."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.2.0"
