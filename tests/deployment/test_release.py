"""`make release` refuses what nobody should get, lists parts and licences of the image, and tags if it is asked to."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.conf import settings

from portal.version_number import VERSION

ROOT = Path(settings.BASE_DIR)
TOOL = ROOT / ".venv" / "cyclonedx" / "bin" / "cyclonedx-py"
# Prints what cyclonedx-py would: it takes two seconds to start, and so does pip.
QUICK_TOOL = """#!/bin/sh
echo '{"metadata": {}, "components": [{"name": "other", "version": "1.0", "licenses": [{"expression": "MIT"}]}]}'
"""
CHANGES = "- Letters can be answered.\n# not a comment"


@dataclass
class Project:
    """A repository with what a release is made of: two packages, and checks that leave a file behind."""

    root: Path
    wheels: Path
    tool: Path = TOOL

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=Alice", "-c", "user.email=alice@example.com")
        done = subprocess.run(["git", *who, *arguments], cwd=self.root, capture_output=True, text=True, check=True)  # noqa: S607
        return done.stdout.strip()

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=More of it")

    def package(self, name: str, *metadata: str) -> str:
        """Make an empty package, and return its line of requirements.lock."""
        stem = f"{name}-1.0.dist-info"
        wheel = self.wheels / f"{name}-1.0-py3-none-any.whl"
        lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *metadata]
        with ZipFile(wheel, "w") as archive:
            archive.writestr(f"{stem}/METADATA", "\n".join(lines) + "\n")
            archive.writestr(f"{stem}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{stem}/RECORD", "")
        return f"{name}==1.0 \\\n    --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n"

    def release(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environ = os.environ | {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "CYCLONEDX": str(self.tool),
            **{f"GIT_{name}": "alice@example.com" for name in ("COMMITTER_NAME", "COMMITTER_EMAIL")},
        }
        command = [sys.executable, "-m", "infra.release", *arguments]
        return subprocess.run(command, cwd=self.root, env=environ, capture_output=True, text=True, check=False)

    @property
    def was_checked(self) -> bool:
        return (self.root / "var" / "checked").exists()

    def written(self, suffix: str) -> str:
        return (self.root / "var" / "release" / f"pooldesk-{VERSION}{suffix}").read_text()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project", tmp_path / "wheels")
    made.wheels.mkdir()
    for name in ("infra/release.py", "portal/version_number.py"):
        made.write(name, (ROOT / name).read_text())
    made.write("CHANGELOG.md", f"# Changes\n\n## {VERSION}\n\n{CHANGES}\n\n## 0.1.0\n\n- It began.\n")
    made.write("requirements.lock", made.package("Some_thing", "License-Expression: MIT", "Requires-Dist: other"))
    made.write("requirements.lock", (made.root / "requirements.lock").read_text() + made.package(
        "other", "Classifier: License :: OSI Approved :: BSD License"))  # fmt: skip
    made.write(".gitignore", "var\n__pycache__\n")
    made.write(".ci/run", "#!/bin/sh\nmkdir -p var && touch var/checked\n")
    (made.root / ".ci" / "run").chmod(0o755)
    made.git("init", "--quiet")
    made.commit()
    return made


@pytest.fixture
def quick_project(project: Project) -> Project:
    """One that takes the packages for installed and listed, which others try."""
    text = (project.root / "infra" / "release.py").read_text()
    project.write("infra/release.py", text.replace("_installed(Path(folder))", "Path(sys.executable)"))
    project.commit()
    project.tool = project.wheels / "cyclonedx-py"
    project.tool.write_text(QUICK_TOOL)
    project.tool.chmod(0o755)
    return project


@pytest.fixture
def tool() -> None:
    if not TOOL.exists():
        pytest.skip("cyclonedx-py is missing: `make test` and `make release` install it")


def test_the_changelog_begins_with_the_version() -> None:
    newest, text = re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == VERSION
    assert text.strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_the_image_is_labelled_with_the_version() -> None:
    command = ["make", "--dry-run", "image", "BUILDER=docker"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"--label org.opencontainers.image.version={VERSION} " in done.stdout


@pytest.mark.usefixtures("tool")
def test_a_release_has_a_parts_list_and_licences_and_is_tagged_with_its_changes(project: Project) -> None:
    done = project.release("--tag")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.was_checked
    parts = json.loads(project.written(".cdx.json"))
    assert (parts["bomFormat"], parts["metadata"]["component"]["version"]) == ("CycloneDX", VERSION)
    first, second = re.findall(r"sha256:(\w+)", (project.root / "requirements.lock").read_text())
    assert {part["purl"]: hashes_of(part) for part in parts["components"]} == {
        "pkg:pypi/some-thing@1.0": [first],
        "pkg:pypi/other@1.0": [second],
    }
    assert sorted(project.written("-licences.txt").splitlines()) == ["Some_thing 1.0: MIT", "other 1.0: BSD License"]
    message = project.git("tag", "--list", "--format=%(contents)", f"v{VERSION}")
    assert message == f"Pooldesk {VERSION}\n\n{CHANGES}"
    assert project.git("status", "--porcelain") == "?? infra/last_release.txt"
    recorded = (project.root / "infra" / "last_release.txt").read_text()
    assert recorded == f"{VERSION} {project.git('rev-parse', f'v{VERSION}^{{commit}}')}\n"


def hashes_of(part: dict[str, Any]) -> list[str]:
    return [one["content"] for reference in part["externalReferences"] for one in reference.get("hashes", [])]


def test_nothing_is_tagged_that_nobody_asked_to_tag(quick_project: Project) -> None:
    done = quick_project.release()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "make release TAG=1" in done.stdout
    assert quick_project.git("tag", "--list") == ""


def has_changes(project: Project) -> None:
    project.write("portal/new.py", "")


def is_tagged(project: Project) -> None:
    project.git("tag", f"v{VERSION}")


def has_no_section(project: Project) -> None:
    project.write("CHANGELOG.md", "# Changes\n\n## 0.1.0\n\n- It began.\n")
    project.commit()


def has_an_empty_section(project: Project) -> None:
    project.write("CHANGELOG.md", f"# Changes\n\n## {VERSION}\n\n## 0.1.0\n\n- It began.\n")
    project.commit()


def lacks_a_hash(project: Project) -> None:
    project.write("requirements.lock", (project.root / "requirements.lock").read_text() + "third==1.0\n")
    project.commit()


def has_another_package_than_its_hash_says(project: Project) -> None:
    project.package("other", "License-Expression: MIT", "Summary: not the one that was looked at")


def lacks_a_package(project: Project) -> None:
    project.write("requirements.lock", (project.root / "requirements.lock").read_text().partition("other==")[0])
    project.commit()


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (has_changes, "the work tree has changes. Commit or remove them.\n?? portal/new.py"),
        (is_tagged, f"the tag v{VERSION} exists. Raise portal/version_number.py"),
        (has_no_section, f"CHANGELOG.md begins with 0.1.0. Add the section of {VERSION}."),
        (has_an_empty_section, f"CHANGELOG.md says nothing about {VERSION}."),
        (lacks_a_hash, "requirements.lock has no hash for third."),
        (has_another_package_than_its_hash_says, "THESE PACKAGES DO NOT MATCH THE HASHES"),
        (lacks_a_package, "requires other, which is not installed."),
    ],
)
def test_a_release_is_refused_before_the_checks_run(project: Project, break_it: Any, reason: str) -> None:
    break_it(project)
    done = project.release("--tag")
    assert done.returncode == 1
    assert done.stderr.startswith(f"No release of {VERSION}: ")
    assert reason in done.stderr
    assert not project.was_checked
    assert not (project.root / "var" / "release").exists()


@pytest.mark.usefixtures("tool")
def test_each_licence_that_nobody_has_allowed_is_named(project: Project) -> None:
    classifier = "Classifier: License :: OSI Approved :: "
    stated = {
        "strict": ["License-Expression: AGPL-3.0-only"],
        "mixed": ["License-Expression: MIT AND GPL-3.0-only"],
        "two": [f"{classifier}MIT License", f"{classifier}GNU General Public License v3 (GPLv3)"],
        "silent": [],
        "fine": ["License-Expression: Apache-2.0"],
    }
    lines = [project.package(name, *metadata) for name, metadata in stated.items()]
    project.write("requirements.lock", (project.root / "requirements.lock").read_text() + "".join(lines))
    project.commit()
    done = project.release("--tag")
    assert done.returncode == 1
    assert sorted(done.stderr.splitlines()[1:]) == [
        "  mixed 1.0: MIT AND GPL-3.0-only",
        "  silent 1.0: none",
        "  strict 1.0: AGPL-3.0-only",
        "  two 1.0: GPL-3.0-only, MIT",
    ]
    assert not project.was_checked


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ("exit 3", "a check failed, see above."),
        ("touch left-behind", "the work tree has changes."),
        ("git -c user.name=A -c user.email=a@example.com commit -qm More --allow-empty", "the commit changed"),
    ],
)
def test_what_the_checks_find_or_change_ends_the_release(quick_project: Project, checks: str, reason: str) -> None:
    quick_project.write(".ci/run", f"#!/bin/sh\n{checks}\n")
    quick_project.commit()
    done = quick_project.release("--tag")
    assert done.returncode == 1
    assert reason in done.stderr
    assert quick_project.git("tag", "--list") == ""
    assert not (quick_project.root / "var" / "release").exists()


def test_make_release_tags_where_it_is_told_to() -> None:
    commands = {}
    for given in ("", "TAG=1"):
        command = ["make", "--dry-run", "--no-print-directory", "release", *given.split()]
        commands[given] = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert commands[""].rstrip().endswith("-m infra.release")
    assert commands["TAG=1"].rstrip().endswith("-m infra.release --tag")
