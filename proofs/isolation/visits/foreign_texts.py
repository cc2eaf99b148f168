"""Know the texts that one tenant's answers alone may hold, and look for them in those of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from proofs.isolation.targets import Target, texts_of

_SHORTEST: Final = 12  # characters of a title that is worth looking for


class ForeignTexts:
    """The texts that one tenant's answers alone may show: its id, people and titles, each absent from all others."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._of = {t.id: {t.id} | {s for s in texts_of(t) if len(s) >= _SHORTEST} for t in targets}
        self._all = {t.id: {*texts_of(t), t.tenant.name} for t in targets}

    def kept_from(self, homes: Collection[str], asked: Any) -> Iterator[str]:
        """Return those that who is at home in these tenants may not see, and which are not in the request itself: an
        echo tells nothing."""
        said = repr(asked)
        seen = "\0".join(text for home in homes if home in self._all for text in self._all[home])
        for tenant_id, texts in self._of.items():
            if tenant_id not in homes:
                yield from (text for text in texts if text not in said and text not in seen)
