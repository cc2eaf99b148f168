"""The example of docs/admin.md, run as it stands there, in the operators' admin with routes of its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.test import override_settings
from django.urls import clear_url_caches, path

from portal import urls

NAME = "tests.admin_example_code"


@cache
def code() -> str:
    page = (Path(settings.BASE_DIR) / "docs" / "admin.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return str(block)


@cache
def example() -> Any:
    """The module that the page's code makes. It registers with the admin's site."""
    module = sys.modules[NAME] = ModuleType(NAME)
    exec(compile(code(), "docs/admin.md", "exec"), module.__dict__)  # noqa: S102  # our own page
    return module


@contextmanager
def in_the_admin() -> Iterator[Any]:
    """The example's module, while its pages are served beside all others."""
    module = example()
    if not admin.site.is_registered(module.Announcement):
        admin.site.register(module.Announcement, module.AnnouncementAdmin)
    served = ModuleType("tests.admin_example_urls")
    others = [p for p in urls.urlpatterns if str(p.pattern) != "admin/"]
    served.urlpatterns = [*others, path("admin/", admin.site.urls)]  # type: ignore[attr-defined]
    for handler in ("handler400", "handler403", "handler404", "handler500"):
        setattr(served, handler, getattr(urls, handler))
    sys.modules[served.__name__] = served
    try:
        with override_settings(ROOT_URLCONF=served.__name__):
            yield module
    finally:
        admin.site.unregister(module.Announcement)
        clear_url_caches()
