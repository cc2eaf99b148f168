"""Write a CloudFormation template as YAML: the few shapes it needs, with short tags, in a stable layout.

No YAML library is among the portal's requirements (PyYAML comes only with the linters), and none writes `!Sub` and
`!If` without a class for each. A test reads the output back with cfn-lint's own parser.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

WIDTH: Final = 110
# All else is quoted, as JSON: a subset of YAML in which nothing is mistaken for a number, a date or a tag.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*(?:\.[A-Za-z0-9_/-]+)*\Z")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def dump(template: dict[str, Any]) -> str:
    """Return the template as text. Sections, and the resources in theirs, are set apart by an empty line."""
    sections = []
    for name, section in template.items():
        if name == "Resources":
            members = ["\n".join(_lines({k: v}, "  ")) for k, v in section.items()]
            sections.append(f"{name}:\n" + "\n\n".join(members))
        else:
            sections.append("\n".join(_lines({name: section}, "")))
    return "\n\n".join(sections) + "\n"


def _lines(value: Any, indent: str) -> list[str]:
    lines: list[str] = []
    if isinstance(value, dict):
        for name, member in value.items():
            # A mapping under a name is easier to read, and to compare, one member a line.
            nested = isinstance(member, dict) and member and not _intrinsic(member)
            inline = None if nested else _inline(member, indent)
            if inline:
                lines.append(f"{indent}{_text(name)}: {inline}")
            else:
                lines += [f"{indent}{_text(name)}:", *_lines(member, f"{indent}  ")]
    else:
        for member in value:
            inline = _inline(member, indent)
            first, *rest = [inline] if inline else _lines(member, f"{indent}  ")
            lines += [f"{indent}- {first.lstrip()}", *rest]
    return lines


def _inline(value: Any, indent: str) -> str | None:
    """Return the value on one line, or None where it nests too deep or is too long for one."""
    if isinstance(value, dict | list) and not _intrinsic(value):
        members = value.values() if isinstance(value, dict) else value
        if any(isinstance(m, dict | list) and not _intrinsic(m) for m in members):
            return None
        line = _flow(value)
        return line if len(indent) + len(line) <= WIDTH else None
    return _flow(value)


def _flow(value: Any) -> str:
    if function := _intrinsic(value):
        return function
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]" if isinstance(value, list) else _text(value)


def _intrinsic(value: Any) -> str | None:
    """Return `{"Fn::If": [...]}` as `!If [...]`; None for what is no intrinsic function."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((name, argument),) = value.items()
    if name != "Ref" and not name.startswith("Fn::"):
        return None
    return f"!{name.removeprefix('Fn::')} {_flow('.'.join(argument) if name == 'Fn::GetAtt' else argument)}"


def _text(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
