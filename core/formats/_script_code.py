"""The code that a TorchScript archive carries, parsed as text by ``ast``; never compiled or run."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Final

from core.errors import BrokenFile
from core.formats._zip import Archive
from core.limits import MIB

CODE_BYTES: Final = 16 * MIB


@dataclass(frozen=True, slots=True)
class ScriptClass:
    """One class of the archive: its methods by name."""

    name: str
    methods: dict[str, ast.FunctionDef]


class ScriptCode:
    """Classes and functions by qualified name such as ``__torch__.torch.nn.modules.conv.Conv2d``."""

    def __init__(self, archive: Archive, root: str) -> None:
        self._archive, self._root = archive, root
        self._file = cache(self._parse)

    def find_class(self, qualified: str) -> ScriptClass | None:
        """The class of that name, ``None`` where the archive has none; reads its file.

        Raises:
            BrokenFile: if the file is not the Python subset that TorchScript writes.
        """
        module, _, name = qualified.rpartition(".")
        return self._file(module)[0].get(name)

    def find_function(self, qualified: str) -> ast.FunctionDef | None:
        """The free function of that name; reads its file.

        Raises:
            BrokenFile: as ``find_class``.
        """
        module, _, name = qualified.rpartition(".")
        return self._file(module)[1].get(name)

    def _parse(self, module: str) -> tuple[dict[str, ScriptClass], dict[str, ast.FunctionDef]]:
        name = f"{self._root}code/{module.replace('.', '/')}.py"
        member = self._archive.by_name.get(name)
        if member is None:
            return {}, {}
        text = self._archive.read(member, CODE_BYTES).decode("utf-8", "replace")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            problem = f"is not TorchScript code: {type(error).__name__}" + (f" in line {line}" if line else "")
            raise BrokenFile(problem, path=self._archive.source.path, field=f"member {name[:200]!r}") from None
        classes = {
            item.name: ScriptClass(f"{module}.{item.name}", _functions(item.body))
            for item in tree.body
            if isinstance(item, ast.ClassDef)
        }
        return classes, _functions(tree.body)


def _functions(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {item.name: item for item in body if isinstance(item, ast.FunctionDef)}


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of nested attributes, empty where it is another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
