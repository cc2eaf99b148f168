"""The product's modules, each parsed once for all tests that read them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@cache
def text(path: Path) -> str:
    return path.read_text()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """A module and all of its statements, whatever they stand in, without the expressions that they are made of."""
    return (*_below(tree(path)),)


def _below(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for block in _BLOCKS:
        inner = getattr(node, block, ())
        for one in inner if isinstance(inner, list) else ():
            yield from _below(one)


@contextmanager
def reading() -> Iterator[None]:
    """Keep what is parsed inside, and let go of it at the end.

    Nothing of it is garbage, and looking for some in so much takes longer than parsing it: here, and in each test that
    came afterwards if it were kept.
    """
    gc.disable()
    try:
        yield
    finally:
        for kept in (text, tree, statements):
            kept.cache_clear()
        gc.enable()


def mentions(path: Path, *words: str) -> bool:
    """Whether a word stands anywhere in a module; where none does, nothing has it for a name or a text."""
    return any(word in text(path) for word in words)
