"""Server time of a page switch with PP-OCR rec open, and memory after ten models were opened and closed.

Targets (design, section 6 and issue M1): 400 ms at p95 over 50 switches; memory back to within 20 MB.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from app import instance
from tests.benchmarks.session import Session
from tests.browser.conftest import free_port, wait_until_healthy
from tests.corpus import fetch

SWITCHES = 50
PAGES = ("overview", "graph", "tensors", "inputs", "trace", "activations")
TARGET_MS, TARGET_MB = 400, 20
MODELS = ("magika", "silero_vad", "silero_vad_16k_op15", "silero_vad_openvino_16k", "rapidocr_det", "rapidocr_rec",
          "rapidocr_cls", "openwakeword_alexa", "openwakeword_embedding_model", "openwakeword_melspectrogram")  # fmt: skip


@contextlib.contextmanager
def dashboard() -> Iterator[tuple[str, Path, int]]:
    """A dashboard of its own: address, state folder, process id."""
    with tempfile.TemporaryDirectory() as folder:
        home, log, port = Path(folder) / "home", Path(folder) / "log", free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "app.cli", "--no-browser", "--port", str(port)],
                cwd=folder, env={**os.environ, "MODELGLASS_HOME": str(home)},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_healthy(url, process, log)
            yield url, home, process.pid
        finally:
            process.terminate()
            process.wait(20)


def opened(home: Path, name: str) -> str:
    """Hand a model to the dashboard and return its id."""
    answer = instance.hand_over(home, fetch(name))
    assert answer is not None
    return answer.artifact


def resident(pid: int) -> float:
    """Resident memory in MB (10^6 bytes), from the kernel."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6


def switches(url: str, home: Path) -> dict[str, list[float]]:
    """Milliseconds of ``SWITCHES`` page switches, by page; the first round is not counted."""
    query = f"model={opened(home, 'rapidocr_rec')}"
    found: dict[str, list[float]] = {page: [] for page in PAGES}
    with Session(url) as session:
        for page in PAGES:
            session.visit(page, query)
        time.sleep(2)
        for number in range(SWITCHES):
            page = PAGES[number % len(PAGES)]
            found[page].append(session.visit(page, query).seconds * 1000)
    return found


def kept_memory(url: str, home: Path, pid: int) -> tuple[float, float, float]:
    """Resident MB before, at most, and after opening, looking at and closing ten models."""
    look_at(url, home, MODELS[0])
    time.sleep(3)
    before = most = resident(pid)
    for name in MODELS:
        look_at(url, home, name)
        most = max(most, resident(pid))
    time.sleep(3)
    return before, most, resident(pid)


def look_at(url: str, home: Path, name: str) -> None:
    """Open a model, see its pages, close it."""
    query = f"model={opened(home, name)}"
    with Session(url) as session:
        for page in ("graph", "tensors", "overview"):
            session.visit(page, query)
        session.press("overview", query, "Close")


def main() -> int:
    """Print both tables; 1 where a target is missed."""
    with dashboard() as (url, home, pid):
        by_page = switches(url, home)
        for page, times in by_page.items():
            print(f"{page:12} median {statistics.median(times):6.0f} ms   largest {max(times):6.0f} ms")
        times = sorted(time for each in by_page.values() for time in each)
        p95 = times[min(len(times) - 1, round(0.95 * len(times)))]
        print(f"page switch with PP-OCR rec open: p95 {p95:.0f} ms over {len(times)} switches (target {TARGET_MS})")
        before, most, after = kept_memory(url, home, pid)
        print(f"memory: {before:.0f} MB before, {most:.0f} MB at most, {after:.0f} MB after ten models were opened and "
              f"closed: {after - before:+.1f} MB (target {TARGET_MB})")  # fmt: skip
    return int(p95 > TARGET_MS or after - before > TARGET_MB)


if __name__ == "__main__":
    sys.exit(main())
