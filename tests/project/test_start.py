"""Starting from a folder that came with a hostile model, and handing a file to the dashboard that runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import launch
from tests.browser.conftest import free_port, wait_until_healthy

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "app" / "sample" / "sample.onnx"
LURES = ("core", "worker", "app", "main", "script", "streamlit", "numpy", "onnx", "sitecustomize", "json", "pages")
CONFIG = """
[server]
address = "0.0.0.0"
baseUrlPath = "lured"
enableXsrfProtection = false
enableCORS = false
maxUploadSize = 7
fileWatcherType = "poll"
enableStaticServing = true
[browser]
gatherUsageStats = true
[theme]
base = "http://127.0.0.1:9/theme.toml"
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose every file leaves a mark when it is run or obeyed."""
    folder = tmp_path / "downloads"
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text(CONFIG)
    (folder / ".streamlit" / "secrets.toml").write_text("lured = 1\n")
    (folder / "static").mkdir()
    for name in LURES:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'MARK')!r}, 'a').write({name!r})\n")
    return folder


def start(folder: Path, home: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], str, Path]:
    port, log = free_port(), home.parent / "output.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("modelglass"), "--no-browser", "--port", str(port), *arguments],
            cwd=folder, env={**os.environ, "MODELGLASS_HOME": str(home)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    wait_until_healthy(url, process, log)
    return process, url, log


@pytest.fixture
def running(hostile: Path, tmp_path: Path) -> Iterator[tuple[str, Path, Path]]:
    """A dashboard started in the hostile folder on a file there: address, state folder, output."""
    (hostile / "model.onnx").write_bytes(SAMPLE.read_bytes())
    home = tmp_path / "home"
    process, url, log = start(hostile, home, "model.onnx")
    try:
        yield url, home, log
    finally:
        process.terminate()
        process.wait(20)


def line_with(log: Path, text: str) -> str:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if text in line:
                return line
        time.sleep(0.1)
    raise AssertionError(f"{text!r} is not in: {log.read_text()}")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads which addresses are listened at from /proc")
def test_nothing_in_the_start_folder_takes_effect(hostile: Path, running: tuple[str, Path, Path]) -> None:
    url, _, log = running
    assert "overview?model=" in line_with(log, "Modelglass is at")
    assert not (hostile / "MARK").exists()
    assert listening(int(url.rsplit(":", 1)[1])) == {"127.0.0.1"}
    assert status(f"{url}/lured/_stcore/health") == 404  # baseUrlPath, which we do not set ourselves, was not read
    assert (
        status(urllib.request.Request(f"{url}/_stcore/upload_file/session/file", b"x", method="PUT")) == 403
    )  # no XSRF token


def status(request: str | urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def listening(port: int) -> set[str]:
    """Addresses at which this machine listens on ``port``, from the kernel."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            address, _, number = local.rpartition(":")
            if state == "0A" and int(number, 16) == port:
                parts = [str(byte) for byte in bytes.fromhex(address)[::-1]]
                found.add(".".join(parts) if len(parts) == 4 else address)
    return found


@pytest.mark.slow
def test_a_worker_started_there_runs_nothing_of_it(hostile: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("modelglass"), "trace", SAMPLE, "--json", "--no-latency"],
        cwd=hostile, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "complete"
    assert not (hostile / "MARK").exists()


@pytest.mark.slow
def test_a_second_one_hands_its_file_to_the_first(running: tuple[str, Path, Path], tmp_path: Path) -> None:
    url, home, log = running
    line_with(log, "Modelglass is at")
    environment = {**os.environ, "MODELGLASS_HOME": str(home)}
    command = [Path(sys.executable).with_name("modelglass"), "--no-browser"]
    second = subprocess.run([*command, SAMPLE], cwd=tmp_path, env=environment, capture_output=True, text=True,
                            check=False, timeout=60)  # fmt: skip
    assert second.returncode == 0
    assert f"runs already: {url}/overview?model=" in second.stdout
    third = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert f"runs already: {url}" in third.stdout
    script = f"import modelglass\nprint(modelglass.show({str(SAMPLE)!r}, browser=False))"
    shown = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True,
                           check=True, timeout=60)  # fmt: skip
    assert shown.stdout.startswith(f"{url}/overview?model=")


@pytest.mark.slow
def test_show_starts_a_dashboard_and_returns(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = f"import modelglass\nprint(modelglass.show({str(SAMPLE)!r}, browser=False))"
    shown = subprocess.run([sys.executable, "-c", script], env={**os.environ, "MODELGLASS_HOME": str(home)},
                           capture_output=True, text=True, check=False, timeout=90)  # fmt: skip
    record = json.loads((home / "instance.json").read_text())
    try:
        assert shown.returncode == 0, shown.stderr
        assert f":{record['port']}/overview?model=" in shown.stdout
        with urllib.request.urlopen(f"http://127.0.0.1:{record['port']}/_stcore/health") as answer:
            assert answer.status == 200
    finally:
        os.kill(record["pid"], signal.SIGTERM)


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "app.cli", "--no-browser", "--port", str(port)],
            env={**os.environ, "MODELGLASS_HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        f"modelglass: error: port {port} cannot be used: it is taken or not allowed. Choose another with --port.\n"
    )


def test_settings_become_flags() -> None:
    config = {"server": {"address": "127.0.0.1", "runOnSave": False, "folderWatchList": []},
              "theme": {"light": {"chartCategoricalColors": ["#000000", "#ffffff"]}}}  # fmt: skip
    assert launch.flags(config, **{"server.port": 9}) == [
        "--server.address=127.0.0.1",
        "--server.runOnSave=false",
        '--theme.light.chartCategoricalColors=["#000000", "#ffffff"]',
        "--server.port=9",
    ]
