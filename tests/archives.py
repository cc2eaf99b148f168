"""Small issue archives to import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def comment(position: int, **values: Any) -> dict[str, Any]:
    at = f"2024-03-02T{position // 3600 % 24:02d}:{position // 60 % 60:02d}:{position % 60:02d}Z"
    return {"author": "bob", "body": f"Comment {position}", "createdAt": at, "updatedAt": at} | values


def issue(number: int, *, comments: int = 0, **values: Any) -> dict[str, Any]:
    return {
        "number": number,
        "id": f"I_{number}",
        "title": f"Issue {number} is here",
        "state": "OPEN",
        "author": "carol",
        "assignees": [],
        "labels": [],
        "body": "It *broke*.",
        "createdAt": "2024-03-01T09:00:00Z",
        "updatedAt": "2024-03-03T09:00:00Z",
        "closedAt": None,
        "comments": [comment(i) for i in range(1, comments + 1)],
    } | values


def pull(number: int, **values: Any) -> dict[str, Any]:
    merged = "2024-03-02T12:00:00Z"
    review = {"author": "dora", "state": "COMMENTED", "body": "Almost.", "createdAt": merged, "comments": []}
    closed = {"state": "MERGED", "closedAt": merged, "mergedAt": merged, "mergedBy": "erin", "reviews": [review]}
    return issue(number, title=f"Change {number}") | closed | values


def write(path: Path, *issues: Any, pulls: tuple[Any, ...] = (), **top: Any) -> Path:
    """An archive of these rows, as the archive tool writes it."""
    whole = {"magic": "E!vIA5L86J2I", "repo": "example/project", "labels": [{"name": "bug"}]} | top
    path.write_text(json.dumps(whole | {"issues": list(issues), "pulls": list(pulls)}))
    return path
