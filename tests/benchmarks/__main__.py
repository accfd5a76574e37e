"""``python -m tests.benchmarks [NAME...]`` runs ``bench_NAME.py``, all of them where none is named, one after another."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted: list[str]) -> int:
    """Run each in a process of its own, so that none warms or burdens the next; 1 where one missed a target."""
    there = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = [name for name in wanted if name not in there]
    if unknown:
        print(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(there)}", file=sys.stderr)
        return 2
    missed = []
    for name in wanted or there:
        print(f"== {name}", flush=True)
        begun = time.perf_counter()
        if subprocess.run([sys.executable, "-m", f"tests.benchmarks.bench_{name}"], check=False).returncode:
            missed.append(name)
        print(f"   {time.perf_counter() - begun:.0f} s\n", flush=True)
    if missed:
        print(f"missed a target or failed: {', '.join(missed)}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
