"""Which names a pickle would import, sorted into harmless, unknown and dangerous."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from core.formats._pickle_objects import Global
from core.ir import Finding

DANGEROUS_MODULES: Final = frozenset(
    [
        "os", "posix", "nt", "subprocess", "sys", "builtins", "__builtin__", "importlib", "runpy", "socket", "shutil",
        "pickle", "_pickle", "dill", "cloudpickle", "joblib", "ctypes", "_ctypes", "pty", "platform", "code", "codeop",
        "pip", "webbrowser", "signal", "threading", "multiprocessing", "asyncio", "types", "functools", "operator",
        "_operator", "marshal", "shelve", "tempfile", "pathlib", "io", "_io", "urllib", "http", "ftplib", "smtplib",
        "requests", "timeit", "pdb", "bdb", "cProfile", "profile", "trace", "inspect", "gc", "resource", "commands",
        "popen2", "test", "idlelib", "ensurepip", "venv",
    ]
)  # fmt: skip
"""Top-level modules with ways to run code or touch the system."""

HARMLESS_BUILTINS: Final = frozenset(
    [
        "set", "frozenset", "list", "dict", "tuple", "int", "float", "complex", "str", "bytes", "bytearray", "bool",
        "object", "slice", "range", "NoneType",
    ]
)  # fmt: skip
HARMLESS: Final = frozenset(
    {
        "collections.OrderedDict", "collections.defaultdict", "collections.Counter", "collections.deque",
        "argparse.Namespace", "copyreg._reconstructor", "copy_reg._reconstructor", "_codecs.encode",
        "pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib.WindowsPath", "datetime.datetime", "datetime.date",
        "datetime.timedelta", "decimal.Decimal", "uuid.UUID", "enum.Enum", "types.SimpleNamespace",
    }
)  # fmt: skip
_TORCH_CODE: Final = frozenset(
    [
        "torch.hub.load", "torch.load", "torch.jit.load", "torch.storage._load_from_bytes",
        "torch.package.PackageImporter", "torch.utils.cpp_extension.load", "torch.utils.cpp_extension.load_inline",
        "torch._dynamo.eval_frame", "torch.fx.graph_module.reduce_graph_module",
        "torch.fx.graph_module.reduce_package_graph_module", "torch.fx.graph_module.reduce_deploy_graph_module",
        "torch.serialization.load", "torch.distributed.rpc.api.rpc_sync", "numpy.load",
        "numpy.f2py.crackfortran.myeval", "numpy.testing._private.utils.runstring", "numpy.distutils",
        "torch.utils._config_module.load_config", "torch._inductor.codecache",
    ]
)  # fmt: skip
"""Names in otherwise harmless libraries that load or compile further code."""


def judge(item: Global) -> str:
    """``""`` harmless, ``"unknown"`` a class or function of somebody's package, ``"dangerous"``."""
    top = item.module.split(".", 1)[0]
    if item.path in HARMLESS:
        return ""
    if item.module in ("builtins", "__builtin__") and item.name in HARMLESS_BUILTINS:
        return ""
    if top in DANGEROUS_MODULES or item.module == "<computed>" or item.name == "<computed>":
        return "dangerous"
    if item.path in _TORCH_CODE or any(part.startswith("__") for part in item.name.split(".")):
        return "dangerous"
    if top in ("torch", "numpy", "__torch__"):
        return ""
    return "unknown"


def findings(items: Iterable[Global], where: str) -> list[Finding]:
    """One finding a name: an error for dangerous, a warning for unknown ones.

    Args:
        where: the member or file that holds the pickle, for the message.
    """
    rows: list[Finding] = []
    seen: set[str] = set()
    unknown: list[str] = []
    for item in items:
        verdict = judge(item)
        if not verdict or item.path in seen:
            continue
        seen.add(item.path)
        if verdict == "dangerous":
            text = f"Unpickling {where} would import and could call {item.path[:200]}; nothing of it was executed."
            rows.append(Finding("pickle.dangerous", "error", text, f"byte {item.byte}"))
        else:
            unknown.append(item.path)
    if unknown:
        names = ", ".join(name[:120] for name in unknown[:5]) + (
            f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        )
        text = f"Unpickling {where} would import code from outside torch and numpy: {names}."
        rows.append(Finding("pickle.unknown_code", "warning", text))
    return rows[:200]
