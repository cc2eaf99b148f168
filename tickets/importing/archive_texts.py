"""Texts from an archive as tags, and as parts of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tickets.ticket import texts
from tickets.ticket.fields import TAG_LIMIT, TAGS_LIMIT

_NOT_IN_TAGS = re.compile(rf"[\s,#|<>{texts.REPLACEMENT}]+")


def tag(label: str) -> str:
    """Return a label as a tag: lower case, hyphens for what a tag cannot have, at most TAG_LIMIT characters."""
    return texts.word(_NOT_IN_TAGS.sub(" ", label)).strip("-")[:TAG_LIMIT].strip("-")


def tag_list(labels: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the tags that a ticket can have, and the labels that were one too many."""
    tags: list[str] = []
    left: list[str] = []
    for label in labels:
        made = tag(label)
        if made and made not in tags:
            (tags if len(tags) < TAGS_LIMIT else left).append(made)
    return tags, left


def type_name(value: Any) -> str:
    """Name the type of a wrong value, without its content, which may be of any size and depth."""
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "nothing" if value is None else names.get(type(value), "a number")


def short(text: str) -> str:
    """Return the beginning of a text from the archive, safe to print on a terminal."""
    clean = "".join(c if c.isprintable() else "\ufffd" for c in text[:41])
    return clean[:40] + "…" if len(text) > 40 else clean
