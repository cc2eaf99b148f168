"""The command line ends as commands do, also before one has begun."""

from __future__ import annotations

import sys

import django.core.management
import pytest

import manage


def test_ctrl_c_while_a_command_is_loaded_ends_with_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(arguments: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(django.core.management, "execute_from_command_line", stopped)
    monkeypatch.setattr(manage.discovery, "prepare", lambda *args, **options: None)
    monkeypatch.setattr(sys, "argv", ["manage.py", "rebuild_search"])
    with pytest.raises(SystemExit) as ended:
        manage.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "Stopped.\n"
