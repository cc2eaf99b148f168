"""Give the scripts of a page their texts in its language: see static/js/words.js.

A script marks a text with `gettext` or `ngettext`, as Python does, with values as {name}.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils import translation
from markupsafe import Markup

from portal.web import locales

SCRIPTS: Final = Path(settings.BASE_DIR) / "static" / "js"
_TEXT: Final = r'"((?:[^"\\]|\\.)*)"'
MARKED: Final = re.compile(rf"\bn?gettext\(\s*{_TEXT}(?:,\s*{_TEXT})?")


@lru_cache(maxsize=1)
def marked() -> frozenset[tuple[str, str]]:
    """Return the texts that scripts mark, each with its form for many, "" where it has none."""
    scripts = (path.read_text() for path in SCRIPTS.glob("*.js"))
    return frozenset((one, many) for script in scripts for one, many in MARKED.findall(script))


def element() -> Markup:
    """Return the element with the texts of scripts in the language of the page. English needs none."""
    return _element(locales.current().language)


@lru_cache(maxsize=8)
def _element(language: str) -> Markup:
    with translation.override(language):
        told = {
            one: [translation.ngettext(one, many, count) for count in (1, 2)] if many else translation.gettext(one)
            for one, many in sorted(marked())
        }
    return Markup('<template id="words">{}</template>').format(json.dumps(told, ensure_ascii=False))
