"""The module tree of stored tensors, from their names: for files without a graph, and treemaps."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from core.errors import NotFound
from core.ir import Model, Tensor
from core.limits import NESTING
from core.structure.memory import remembered
from core.structure.picture import ViewNode
from core.structure.place import Crumb

_NUMBER: Final = re.compile(r"\d{1,9}")
_SLICE: Final = re.compile(r"c(\d{1,9})-(\d{1,9})")
_PREFIX: Final = "m."


@dataclass(slots=True)
class Module:
    """A scope of tensor names.

    Attributes:
        path: full name with the separators of the file.
        tensors: indexes of the tensors directly in it; ``children`` the modules inside.
        count, parameters, nbytes: of everything inside; ``dtypes`` bytes by dtype.
        repeats: how many equal modules this one stands for, 1 for itself alone;
            ``label`` then reads ``layers.0 … layers.31``.
    """

    name: str
    path: str
    children: dict[str, Module] = field(default_factory=dict[str, "Module"])
    tensors: list[int] = field(default_factory=list[int])
    count: int = 0
    parameters: int = 0
    nbytes: int = 0
    dtypes: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, tensor: Tensor) -> None:
        """Count one tensor that lies inside."""
        self.count += 1
        self.parameters += tensor.elements if tensor.dtype not in ("string", "opaque") else 0
        self.nbytes += tensor.nbytes
        self.dtypes[tensor.dtype] = self.dtypes.get(tensor.dtype, 0) + tensor.nbytes

    def all_tensors(self) -> list[int]:
        """Indexes of everything inside, in order of the file."""
        found: list[int] = []
        stack: list[Module] = [self]
        while stack:
            module = stack.pop()
            found.extend(module.tensors)
            stack.extend(module.children.values())
        return sorted(found)


def module_tree(model: Model, tensors: Iterable[int] | None = None) -> Module:
    """The tree of all tensors (or of these), names split at ``.`` or, where there are more, ``/``."""
    chosen = range(len(model.tensors)) if tensors is None else tensors
    named = [(index, model.tensors[index]) for index in chosen]
    slashes = sum("/" in tensor.name for _, tensor in named)
    separator = "/" if slashes * 2 > len(named) else "."
    root = Module("", "")
    for index, tensor in named:
        module = root
        module.add(tensor)
        parts = [part for part in tensor.name.split(separator) if part][: NESTING + 1]
        for part in parts[:-1]:
            inner = module.children.get(part)
            if inner is None:
                path = f"{module.path}{separator}{part}" if module.path else part
                inner = module.children[part] = Module(part, path)
            module = inner
            module.add(tensor)
        module.tensors.append(index)
    return root


@dataclass(frozen=True, slots=True)
class Repeat:
    """Neighbouring modules with equal structure, e.g. ``layers.0 … layers.31``; or a single one."""

    modules: tuple[Module, ...]

    @property
    def first(self) -> Module:
        """The first of them."""
        return self.modules[0]

    @property
    def label(self) -> str:
        """Name of the module, or of the first and the last with their number."""
        first, last = self.modules[0], self.modules[-1]
        return first.name if len(self.modules) == 1 else f"{first.name} … {last.name} ({len(self.modules)}×)"


def repeats(model: Model, module: Module) -> list[Repeat]:
    """Children of ``module``, those with numbers for names and equal shapes in a row taken together."""
    groups: list[list[Module]] = []
    before: object = None
    for child in sorted(module.children.values(), key=_number):
        shape = signature(model, child) if _NUMBER.fullmatch(child.name) else None
        if shape is not None and shape == before:
            groups[-1].append(child)
        else:
            groups.append([child])
        before = shape
    return [Repeat(tuple(group)) for group in groups]


def signature(model: Model, module: Module) -> object:
    """What two modules share when they differ in nothing but their name and numbers inside."""
    rows: list[tuple[str, str, tuple[int, ...]]] = []
    start = len(module.path)
    for index in module.all_tensors():
        tensor = model.tensors[index]
        rows.append((tensor.name[start:], tensor.dtype, tensor.shape))
    return tuple(sorted(rows))


def _number(module: Module) -> tuple[int, int]:
    return (0, int(module.name)) if _NUMBER.fullmatch(module.name) else (-1, 0)


def module_nodes(model: Model, inside: str, limit: int) -> tuple[tuple[ViewNode, ...], tuple[Crumb, ...], bool]:
    """The view of a file without a graph: modules and tensors of one scope, no lines.

    Returns:
        The boxes, the way here, and whether boxes were taken together to stay in ``limit``.

    Raises:
        NotFound: if ``inside`` names no module.
    """
    base, *slices = inside.split("~")
    shown, crumbs = _enter(model, remembered(model, "modules", lambda: module_tree(model)), base)
    nodes = _contents(model, shown)
    name = crumbs[-1].id
    for text in slices:
        match = _SLICE.fullmatch(text)
        if match is None:
            raise NotFound(f"{text[:40]!r} is no range of modules", path=model.path)
        low, high, name = int(match[1]), int(match[2]) + 1, f"{name}~{text}"
        nodes = nodes[low:high]
        crumbs = (*crumbs, Crumb(name, f"{low + 1:,}–{high:,}"))
    if len(nodes) <= limit:
        return tuple(nodes), crumbs, False
    size = max(limit - limit // 5, -(-len(nodes) // limit))
    pieces = [(at, nodes[at : at + size]) for at in range(0, len(nodes), size)]
    return tuple(_slice(name, at, piece, len(nodes)) for at, piece in pieces), crumbs, True


def _slice(name: str, at: int, piece: Sequence[ViewNode], total: int) -> ViewNode:
    label = f"parts {at + 1:,}–{at + len(piece):,} of {total:,}"
    members = tuple(member for node in piece for member in node.members)
    return ViewNode(f"{name}~c{at}-{at + len(piece) - 1}", "region", label, "", members, "other",
                    evidence="Neighbours in the order of the file.", detector="file order", enterable=True)  # fmt: skip


def _contents(model: Model, shown: Module | Repeat) -> list[ViewNode]:
    if isinstance(shown, Repeat):
        return [_box(Repeat((module,))) for module in shown.modules]
    boxes = [_box(repeat) for repeat in repeats(model, shown)]
    for index in shown.tensors:
        tensor = model.tensors[index]
        label = tensor.name[len(shown.path) :].lstrip("./")
        boxes.append(ViewNode(f"t{index}", "operator", label, tensor.dtype, (f"t{index}",), "constant", tensor.name))
    return boxes


def _box(repeat: Repeat) -> ViewNode:
    members = tuple(f"t{index}" for module in repeat.modules for index in module.all_tensors())
    evidence = "Tensors whose names begin alike."
    if len(repeat.modules) > 1:
        evidence = f"{len(repeat.modules)} modules in a row with the same names, dtypes and shapes inside."
    return ViewNode(_id(repeat), "region", repeat.label, "", members, "other", repeat.first.path,
                    evidence=evidence, detector="tensor names", enterable=True)  # fmt: skip


def _id(repeat: Repeat) -> str:
    key = "\0".join((repeat.modules[0].path, repeat.modules[-1].path, str(len(repeat.modules))))
    return _PREFIX + hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _enter(model: Model, root: Module, wanted: str) -> tuple[Module | Repeat, tuple[Crumb, ...]]:
    """Find a module or a group of repeated ones by id, walking all of the tree."""
    start: tuple[Crumb, ...] = (Crumb("", model.name),)
    if wanted in ("", _PREFIX):
        return _skip(root), start
    stack: list[tuple[Module, tuple[Crumb, ...]]] = [(_skip(root), start)]
    while stack:
        module, way = stack.pop()
        for repeat in repeats(model, module):
            crumb = Crumb(_id(repeat), repeat.label)
            here = (*way, crumb)
            if crumb.id == wanted:
                return (repeat if len(repeat.modules) > 1 else repeat.first), here
            for inner in repeat.modules:
                if len(repeat.modules) == 1:
                    stack.append((inner, here))
                    continue
                one = Crumb(_id(Repeat((inner,))), inner.name)
                if one.id == wanted:
                    return inner, (*here, one)
                stack.append((inner, (*here, one)))
    raise NotFound(f"no module is called {wanted[:80]!r}", path=model.path)


def _skip(module: Module) -> Module:
    """The first module that holds more than one thing: ``model.model.`` alone says nothing."""
    while len(module.children) == 1 and not module.tensors:
        module = next(iter(module.children.values()))
    return module
