"""The product stands alone: it starts without the proofs, benchmarks and tests beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from django.conf import settings

PRODUCT = ("manage.py", "portal", "tenants", "delivery", "tickets", "api", "templates", "static")


def test_it_starts_without_proofs_benchmarks_and_tests(tmp_path: Path) -> None:
    for name in PRODUCT:
        source = Path(settings.BASE_DIR) / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    code = "import tickets.following.lambda_entry; from django.core.management import call_command as c; c('check')"
    environ = {"PATH": os.environ["PATH"], "DEBUG": "1", "DJANGO_SETTINGS_MODULE": "portal.settings"}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "System check identified no issues (0 silenced).\n"), ended.stderr
