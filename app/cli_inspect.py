"""The verbs that look at a file: info, tensors, stats, graph."""

from __future__ import annotations

import argparse
import threading
from typing import Any, Final

from app.cli_text import Bar, cell, print_facts, print_json, print_table, shape, size
from core.errors import NotFound, UsageError
from core.ir import Model
from core.opening import open_model
from core.statistics.types import TensorStats
from core.summary import summary, tensor_row

STOPPED: Final = threading.Event()
"""Set by Ctrl-C; work in threads looks at it."""

_SORTS: Final = ("index", "name", "dtype", "encoding", "elements", "bytes", "start")
_STATS: Final = ("min", "max", "mean", "std", "l2", "absmax", "nan", "inf", "zero")


def add_info(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``info``."""
    parser.set_defaults(work=info)


def add_tensors(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``tensors``."""
    parser.add_argument("--stats", action="store_true", help="read every tensor and measure it")
    parser.add_argument("--sort", metavar="KEY", help="one of " + ", ".join((*_SORTS, *_STATS)))
    parser.add_argument("--descending", action="store_true", help="largest first")
    parser.add_argument("--limit", type=int, metavar="N", help="print at most N")
    parser.add_argument("--where", metavar="SQL", help='only those for which this holds, e.g. "bytes > 1000"')
    parser.set_defaults(work=tensors)


def add_stats(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``stats``."""
    parser.add_argument("tensor", metavar="TENSOR", help="its name, or #N for the one at index N")
    parser.add_argument("--axis", type=int, metavar="N", help="also for every channel along this axis")
    parser.set_defaults(work=stats)


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``graph``."""
    from core.structure.regions import LEVELS

    parser.add_argument("--level", choices=LEVELS, default="layer", help="how far regions are opened (layer)")
    parser.add_argument("--inside", metavar="ID", help="id of a region, a subgraph or a node that holds one")
    parser.add_argument("--limit", type=int, default=150, metavar="N", help="most nodes of the view (150)")
    parser.add_argument("--constants", action="store_true", help="keep Constant nodes")
    parser.set_defaults(work=graph)


def info(options: argparse.Namespace) -> int:
    """Print what a file is."""
    model = open_model(options.file)
    data = summary(model)
    if options.json:
        print_json(data)
        return 0
    print_facts(
        {
            "file": model.path,
            "format": data["kind"],
            "size": size(data["size_bytes"]) + (f" in {len(data['files'])} files" if len(data["files"]) > 1 else ""),
            "producer": data["producer"],
            "opsets": ", ".join(f"{domain} {number}" for domain, number in data["opsets"].items()),
            "graphs": data["graphs"],
            "nodes": data["nodes"],
            "tensors": data["tensors"],
            "parameters": data["parameters"],
            "dtypes": ", ".join(f"{name} {size(each['bytes'])}" for name, each in data["dtypes"].items()),
        }
    )
    for title in ("inputs", "outputs"):
        for port in data[title]:
            print(f"{title[:-1].ljust(10)}  {cell(port['name'], 80)}  {port['type'] or port['dtype'] or '?'} "
                  f"{'' if port['type'] else shape(port['shape'])}")  # fmt: skip
    for key, value in data["metadata"].items():
        print(f"metadata    {cell(key)} = {cell(value, 100)}")
    for name, each in data["capabilities"].items():
        print(f"{name.ljust(10)}  {each['available']}{': ' + cell(each['reason'], 0) if each['reason'] else ''}")
    for finding in data["findings"]:
        at = f" (at {finding['at']})" if finding["at"] else ""
        print(f"{finding['severity']}: {cell(finding['message'], 0)}{cell(at)} [{finding['code']}]")
    return 0


def tensors(options: argparse.Namespace) -> int:
    """Print the tensors of a file."""
    model = open_model(options.file)
    chosen = list(range(len(model.tensors)))
    measured = _measure_all(model) if options.stats else {}
    rows = {index: tensor_row(model, index, measured.get(index)) for index in chosen}
    if options.where is not None:
        from core.store.condition import matching

        chosen = matching([_flat(rows[index]) for index in chosen], options.where)
    if options.sort:
        chosen = _sorted(chosen, rows, options.sort, options.descending)
    elif options.descending:
        chosen.reverse()
    if options.limit is not None:
        if options.limit < 0:
            raise UsageError(f"the limit is {options.limit}, expected 0 or more")
        chosen = chosen[: options.limit]
    if options.json:
        print_json([rows[index] for index in chosen])
        return 0
    names = ("mean", "std", "min", "max", "nan", "inf") if options.stats else ()
    print_table(
        ("index", "name", "dtype", "shape", "bytes", "encoding", *names),
        [
            (index, row["name"], row["dtype"], shape(row["shape"]), row["bytes"], row["encoding"],
             *(row.get("stats", {}).get(name) for name in names))
            for index, row in ((index, rows[index]) for index in chosen)
        ],
    )  # fmt: skip
    return 0


def stats(options: argparse.Namespace) -> int:
    """Print the statistics of one tensor."""
    from core.statistics import channels
    from core.statistics.tensors import of_tensor

    model = open_model(options.file)
    index = _find(model, options.tensor)
    tensor = model.tensors[index]
    if options.axis is not None and not -len(tensor.shape) <= options.axis < len(tensor.shape):
        raise UsageError(f"tensor {tensor.name!r} has {len(tensor.shape)} axes, there is no axis {options.axis}",
                         path=model.path)  # fmt: skip
    with Bar("reading", tensor.nbytes) as bar:
        data = of_tensor(model, tensor, progress=bar, cancelled=STOPPED.is_set).to_json()
        if options.axis is not None:
            data["channels"] = channels.of_tensor(
                model, tensor, options.axis % len(tensor.shape), cancelled=STOPPED.is_set
            ).to_json()
    if options.json:
        print_json(data)
        return 0
    print_facts({"tensor": tensor.name, "dtype": tensor.dtype, "shape": shape(tensor.shape)})
    hidden = ("quantiles", "histogram", "channels", "error")
    print_facts({name: value for name, value in data.items() if name not in hidden})
    print_facts({f"q {name}": value for name, value in data["quantiles"].items()})
    if "channels" in data:
        names = ("min", "max", "mean", "std", "nan", "inf", "zero")
        print_table(("channel", *names), [(i, *(row[n] for n in names)) for i, row in enumerate(data["channels"])])
    return 0


def graph(options: argparse.Namespace) -> int:
    """Print the graph at one level."""
    from core.structure.view import graph_view

    view = graph_view(
        open_model(options.file), level=options.level, inside=options.inside, limit=options.limit,
        hide_constants=not options.constants,
    )  # fmt: skip
    if options.json:
        print_json(view.to_json())
        return 0
    labels = {node.id: node.label for node in view.nodes}
    rows = [node.to_json() for node in view.nodes]
    print_table(
        ("id", "kind", "label", "op_type", "members"),
        [(row["id"], row["kind"], row["label"], row["op_type"] or "", _count(row["members"])) for row in rows],
    )
    print()
    print_table(
        ("from", "to", "values"),
        [(labels.get(e.source, e.source), labels.get(e.target, e.target), ", ".join(e.values)) for e in view.edges],
    )
    return 0


def _count(members: object) -> int:
    return members if isinstance(members, int) else len(members) if isinstance(members, (list, tuple)) else 0


def _find(model: Model, wanted: str) -> int:
    if wanted.startswith("#") and wanted[1:].isdigit() and int(wanted[1:]) < len(model.tensors):
        return int(wanted[1:])
    found = [index for index, tensor in enumerate(model.tensors) if tensor.name == wanted]
    if not found:
        raise NotFound(f"there is no tensor {wanted!r}", path=model.path, hint="See modelglass tensors FILE.")
    if len(found) > 1:
        raise UsageError(f"{len(found)} tensors are called {wanted!r}", path=model.path,
                         hint="Say one of " + ", ".join(f"#{index}" for index in found[:8]) + ".")  # fmt: skip
    return found[0]


def _measure_all(model: Model) -> dict[int, TensorStats]:
    from core.statistics.tensors import of_tensor
    from core.tensors.read import decodable

    measured: dict[int, TensorStats] = {}
    done, total = 0, sum(tensor.nbytes for tensor in model.tensors)
    with Bar("measuring", total) as bar:
        for index, tensor in enumerate(model.tensors):
            if not decodable(model, tensor) and tensor.dtype != "string":
                measured[index] = of_tensor(
                    model, tensor, progress=lambda now, before=done: bar(before + now), cancelled=STOPPED.is_set
                )
            done += tensor.nbytes
    return measured


def _sorted(chosen: list[int], rows: dict[int, dict[str, Any]], key: str, descending: bool) -> list[int]:
    if key not in (*_SORTS, *_STATS):
        raise UsageError(f"tensors cannot be sorted by {key!r}", hint="Sort by " + ", ".join((*_SORTS, *_STATS)) + ".")
    if key in _STATS and not any("stats" in row for row in rows.values()):
        raise UsageError(f"sorting by {key} needs --stats")
    known = [index for index in chosen if _flat(rows[index]).get(key) is not None]
    rest = [index for index in chosen if _flat(rows[index]).get(key) is None]
    return sorted(known, key=lambda index: _flat(rows[index])[key], reverse=descending) + rest


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its statistics beside the other columns."""
    return {**row, **{name: row.get("stats", {}).get(name) for name in _STATS}}
