"""Static files for test clients: each has middleware of its own, which would look for the same 175 files again."""

from __future__ import annotations

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

_found: dict[tuple[object, ...], dict[str, StaticFile]] = {}


class FoundOnce(WhiteNoiseMiddleware):
    """WhiteNoise as it is, except that what one client's found is there for the next."""

    def add_files_from_finders(self) -> None:
        how = (self.static_prefix, self.max_age, self.charset, self.allow_all_origins)
        if how not in _found:
            super().add_files_from_finders()
            _found[how] = self.files
        self.files = _found[how]
