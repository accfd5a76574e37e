"""The command ``modelglass``: verbs on model files, and the dashboard where no verb is given."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from types import FrameType
from typing import Final, NoReturn

from app import cli_edit, cli_input, cli_inspect, cli_trace
from app.cli_text import printable
from core.errors import Cancelled, ModelError

DONE, FAILED, CANCELLED = 0, 2, 130

_ABOUT: Final = """\
modelglass [FILE] [--port N]     the dashboard, on FILE if given
modelglass VERB FILE [...]       look at or run a file from here:
"""
_EXITS: Final = "Exit codes: 0 done, 2 wrong usage, an unusable file or a failed run, 130 cancelled."

_STATS: Final = "statistics of one tensor"
VERBS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "info": ("what a file is: signature, sizes, dtypes, capabilities, findings", cli_inspect.add_info),
    "tensors": ("its stored tensors", cli_inspect.add_tensors),
    "stats": (_STATS, cli_inspect.add_stats),
    "graph": ("its graph at a level, or inside one region", cli_inspect.add_graph),
    "trace": ("run it under limits and keep every intermediate value", cli_trace.add_trace),
    "edit": ("change it by a script and write a new file, checked and compared", cli_edit.add_edit),
    "input": ("make an input: a picture, a recording, a table, a signal, random numbers", cli_input.add_input),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors become one line on standard error."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except (KeyboardInterrupt, Cancelled):
        print("modelglass: cancelled", file=sys.stderr)
        return CANCELLED
    except ModelError as error:
        return _fail(given, error)
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _run(given: list[str]) -> int:
    if given and given[0] in VERBS:
        title, add = VERBS[given[0]]
        parser = _Parser(prog=f"modelglass {given[0]}", description=title.capitalize() + ".", epilog=_EXITS)
        what = ("KIND", "what to make") if given[0] == "input" else ("FILE", "a model file or folder")
        parser.add_argument("file", metavar=what[0], help=what[1])
        add(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON document")
        code: int = _call(parser.parse_args(given[1:]))
        sys.stdout.flush()
        return code
    return _dashboard(given)


def _call(options: argparse.Namespace) -> int:
    """The verb's own work; a second Ctrl-C is not needed where the first finds it in a library's loop."""
    signal.signal(signal.SIGINT, _interrupt)
    return options.work(options)


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    cli_inspect.STOPPED.set()
    raise KeyboardInterrupt


def _dashboard(given: list[str]) -> int:
    width = max(map(len, VERBS))
    verbs = "".join(f"  {name.ljust(width)}  {title}\n" for name, (title, _) in VERBS.items())
    parser = _Parser(
        prog="modelglass", usage="modelglass [FILE] [options] | VERB FILE [options]", description=_ABOUT + verbs,
        epilog=_EXITS, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE", nargs="?", help="a model file or folder to open")
    parser.add_argument("--port", type=int, help="port to answer at (the first free one from 8501 on)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser window")
    parser.add_argument("--verbose", action="store_true", help="show the log")
    parser.add_argument("--version", action="version", version=f"modelglass {version('modelglass')}")
    options = parser.parse_args(given)

    from app import launch

    launch.start(
        options.file, say=_say, port=options.port, browser=not options.no_browser, verbose=options.verbose
    )  # fmt: skip
    return DONE


def _say(line: str) -> None:
    print(printable(line), flush=True)


def _fail(given: Sequence[str], error: ModelError) -> int:
    text = str(error)
    if not error.path:
        place = given[1:2] if given and given[0] in VERBS else given[:1]
        text = "".join(f"{file}: " for file in place if not file.startswith("-")) + text
    print(f"modelglass: error: {printable(text)}", file=sys.stderr)
    return FAILED


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as for every other error."""

    def error(self, message: str) -> NoReturn:
        print(f"modelglass: error: {printable(message)} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(FAILED)


if __name__ == "__main__":
    sys.exit(main())
