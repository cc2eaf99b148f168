"""Make a release of the version in portal/version_number.py: `make release`; `make release TAG=1` also makes its tag.

It refuses a changed tree, a version that has a tag, a CHANGELOG.md that does not begin with the version, a package
without a hash, and a licence that nobody has allowed. What fails quickly comes first, and .ci/run last.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from portal.version_number import VERSION

ROOT: Final = Path(__file__).resolve().parents[1]
TAG: Final = f"v{VERSION}"
LAST: Final = ROOT / "infra" / "last_release.txt"  # its version and commit, for tests/deployment/test_two_versions.py
# As packages state them: an SPDX expression, or the name of a classifier. Each lets a product be passed on that has the
# package unchanged; a new one is read by a person before it is added. MPL-2.0 asks for the sources of its own files.
ALLOWED: Final = {
    "Apache Software License", "Apache-2.0", "Apache-2.0 OR BSD-2-Clause", "Apache-2.0 OR BSD-3-Clause", "BSD License",
    "BSD-2-Clause", "BSD-3-Clause", "BSD-3-Clause AND ISC", "ISC", "MIT", "MIT License", "MIT OR AFL-2.1", "MIT-0",
    "MIT-CMU", "MPL-2.0", "MPL-2.0 AND (Apache-2.0 OR MIT)", "Mozilla Public License 2.0 (MPL 2.0)",
    "PSF-2.0", "Zope Public License",
}  # fmt: skip


class Refused(Exception):
    """Its text is the reason why there is no release."""


def release(*, tags: bool) -> None:
    commit = _clean_commit()
    if _git("tag", "--list", TAG):
        raise Refused(f"the tag {TAG} exists. Raise portal/version_number.py, and add the section to CHANGELOG.md.")
    changes = newest_changes()
    hashes = locked_hashes()
    with TemporaryDirectory() as folder:
        parts = _parts(_installed(Path(folder)), hashes, _git("show", "--no-patch", "--format=%ct", commit))
    licences = {f"{part['name']} {part['version']}": _licences(part) for part in parts["components"]}
    if strange := [f"{name}: {', '.join(found) or 'none'}" for name, found in licences.items() if not allows(found)]:
        raise Refused("licences that infra/release.py does not allow:\n  " + "\n  ".join(strange))
    if subprocess.run([ROOT / ".ci" / "run"], check=False).returncode:
        raise Refused("a check failed, see above.")
    if _clean_commit() != commit:
        raise Refused("the commit changed while the checks ran.")
    _write(f"pooldesk-{VERSION}.cdx.json", json.dumps(parts, indent=1))
    _write(f"pooldesk-{VERSION}-licences.txt", "\n".join(f"{name}: {', '.join(licences[name])}" for name in licences))
    if tags:
        _git("tag", "--annotate", "--cleanup=whitespace", f"--message=Pooldesk {VERSION}\n\n{changes}", TAG, commit)
        LAST.write_text(f"{VERSION} {commit}\n")
        _say(f"Tagged {TAG}. Publish it: git push origin {TAG}, then make image.")
        _say(f"Commit {LAST.relative_to(ROOT)}: tests run this version beside the next one.")
    else:
        _say(f"{VERSION} can be released. `make release TAG=1` checks it again, and makes the tag {TAG}.")


def newest_changes() -> str:
    """Return the text of the newest section of CHANGELOG.md, which has to be that of the version."""
    sections = re.split(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    newest, changes = (sections[1], sections[2].strip()) if len(sections) > 1 else ("no section", "")
    if newest != VERSION:
        raise Refused(f"CHANGELOG.md begins with {newest}. Add the section of {VERSION}.")
    if not changes:
        raise Refused(f"CHANGELOG.md says nothing about {VERSION}.")
    return changes


def locked_hashes() -> dict[str, list[str]]:
    """Return the hashes of each package of the image, by its normalised name."""
    entries = re.split(r"\n(?=\w)", (ROOT / "requirements.lock").read_text().strip())
    found = {_normal(entry): re.findall(r"--hash=sha256:([0-9a-f]{64})", entry) for entry in entries}
    if bare := sorted(name for name, hashes in found.items() if not hashes):
        raise Refused(f"requirements.lock has no hash for {', '.join(bare)}. `make lock` writes it anew.")
    return found


def allows(licences: Sequence[str]) -> bool:
    """Return whether there is a licence and each is allowed: parts of a package may have different ones."""
    return bool(licences) and set(licences) <= ALLOWED


def _installed(folder: Path) -> Path:
    """Install the packages of the image as its build does, compare their hashes, and return their Python."""
    venv.create(folder, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", folder]
    install = ["install", "--quiet", "--no-compile", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    for arguments in ([*install, "-r", ROOT / "requirements.lock"], ["check"]):
        done = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(f"requirements.lock cannot be installed.\n{done.stdout}{done.stderr}")
    return folder / "bin" / "python"


def _parts(python: Path, hashes: Mapping[str, Sequence[str]], moment: str) -> dict[str, Any]:
    """Return the software bill of materials, in CycloneDX's JSON, with the hashes that the image is built by."""
    tool = Path(os.environ.get("CYCLONEDX", ROOT / ".venv" / "cyclonedx" / "bin" / "cyclonedx-py"))
    command = [tool, "environment", "--output-reproducible", "--of", "JSON", python]
    environ = os.environ | {"SOURCE_DATE_EPOCH": moment}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"cyclonedx-py failed.\n{done.stderr}")
    parts: dict[str, Any] = json.loads(done.stdout)
    product = {"type": "application", "bom-ref": "pooldesk", "name": "pooldesk", "version": VERSION}
    parts["metadata"]["component"] = product
    for part in parts["components"]:
        known = [{"alg": "SHA-256", "content": one} for one in hashes[_normal(part["name"])]]
        url = f"https://pypi.org/project/{part['name']}/{part['version']}/"
        part.setdefault("externalReferences", []).append({"type": "distribution", "url": url, "hashes": known})
    return parts


def _licences(part: Mapping[str, Any]) -> list[str]:
    stated = part.get("licenses", [])
    named = [one.get("expression") or one["license"].get("id") or one["license"]["name"] for one in stated]
    return [name.rpartition(" :: ")[2] for name in named]


def _normal(requirement: str) -> str:
    """Return the name at the beginning, in the one spelling that compares equal."""
    return re.sub(r"[-_.]+", "-", re.split(r"[=\[ ]", requirement, maxsplit=1)[0]).lower()


def _clean_commit() -> str:
    """Return the id of the commit that the work tree is, without any change."""
    if changed := _git("status", "--porcelain"):
        raise Refused(f"the work tree has changes. Commit or remove them.\n{changed}")
    return _git("rev-parse", "HEAD")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode:
        raise Refused(f"git {arguments[0]} failed.\n{done.stderr}")
    return done.stdout.strip()


def _write(name: str, text: str) -> None:
    path = ROOT / "var" / "release" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    _say(f"Wrote {path.relative_to(ROOT)}.")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make release", description="Check the version, and tag it if asked to.")
    parser.add_argument("--tag", action="store_true", help="make the tag")
    try:
        release(tags=parser.parse_args().tag)
    except Refused as refused:
        sys.exit(f"No release of {VERSION}: {refused}")
