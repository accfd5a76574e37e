import json
import logging
import os
import stat
import subprocess
import sys
import time

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app import handed_over, instance, log, state_folder, workspace
from app.actors import LOCAL_OWNER
from app.services import models, opening
from app.spools import Spools
from core.errors import ModelError, NotFound, StoreError
from tests.app.test_services_all import write_model


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("MODELGLASS_HOME", str(folder))
    workspace.close()
    yield folder
    workspace.close()


# --- the state folder -------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_everything_in_the_state_folder_is_private(home, tmp_path):
    with write_model(tmp_path / "m.onnx").open("rb") as stream:
        opening.open_upload(LOCAL_OWNER, "m.onnx", stream)
    workspace.close()
    for path in (home, *home.rglob("*")):
        if path.is_dir() or path.name == instance.FILE or path.suffix == ".onnx":
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_the_folder_is_where_the_platform_keeps_state(monkeypatch, tmp_path):
    monkeypatch.delenv("MODELGLASS_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_folder.locate() == tmp_path / ".local" / "state" / "modelglass"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert state_folder.locate() == tmp_path / "x" / "modelglass"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # to be ignored, XDG base directory specification
    assert state_folder.locate() == tmp_path / ".local" / "state" / "modelglass"


def test_a_state_folder_that_cannot_be_made_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MODELGLASS_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(StoreError, match="MODELGLASS_HOME"):
        workspace.current()


def test_texts_of_a_model_in_the_log_are_data(home):
    workspace.current()
    log.logger("test").warning("%s", "100% {secret} \ud800 %s")
    logging.getLogger(log.NAME).handlers[0].flush()
    assert "100% {secret} \\ud800 %s" in (home / "logs" / log.FILE).read_text()


# --- one process a workspace ------------------------------------------------------------


def test_a_second_process_works_in_memory_and_says_so(home):
    held = workspace.current()
    code = "from app import workspace; w = workspace.current(); print(w.notice); print(w.home); workspace.close()"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    notice, other = out.splitlines()
    assert "works in memory" in notice
    assert other != str(home)
    assert not os.path.exists(other)
    assert held.notice == ""


def test_a_killed_process_leaves_no_lock(home):
    code = "from app import workspace; import time; workspace.current(); print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"ready\n"
        assert workspace.current().notice != ""
        workspace.close()
        holder.kill()
    assert workspace.current().notice == ""


def test_a_damaged_database_is_said_to_be_kept_aside(home):
    home.mkdir()
    (home / state_folder.DATABASE).write_bytes(b"garbage")
    assert "was kept as" in workspace.current().notice
    assert [p.read_bytes() for p in home.iterdir() if ".aside-" in p.name] == [b"garbage"]


def test_nobody_holds_a_new_state_folder(home, tmp_path):
    assert instance.hand_over(home, tmp_path) is None
    home.mkdir()
    (home / instance.FILE).write_text(json.dumps({"pid": 1, "port": 1, "secret": "left by a crash"}))
    assert instance.hand_over(home, tmp_path) is None


def test_a_holder_that_does_not_answer_is_one_sentence(home, tmp_path):
    held = workspace.current()
    with pytest.raises(StoreError, match="does not answer"):
        instance.hand_over(home, tmp_path, timeout=0.2)
    held.instance.announce(1)  # nothing listens at port 1
    with pytest.raises(StoreError, match=f"process {os.getpid()}"):
        instance.hand_over(home, tmp_path, timeout=0.2)


SERVER = """
import socket, threading, uvicorn
from starlette.applications import Starlette
from app import handed_over, workspace
sock = socket.socket(); sock.bind(("127.0.0.1", 0))
workspace.current().instance.announce(sock.getsockname()[1])
server = uvicorn.Server(uvicorn.Config(Starlette(routes=handed_over.routes), log_level="error"))
print("ready", flush=True)
server.run(sockets=[sock])
"""


def test_a_file_is_opened_in_the_process_that_holds_the_workspace(home, tmp_path):
    path = write_model(tmp_path / "m.onnx")
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"ready\n"
            opened = instance.hand_over(home, path)
            assert opened.url.startswith("http://127.0.0.1:")
            assert opened.url.endswith(f"/overview?model={opened.artifact}")
            (tmp_path / "no.onnx").write_bytes(b"")
            with pytest.raises(ModelError, match="empty"):
                instance.hand_over(home, tmp_path / "no.onnx")
        finally:
            holder.kill()
    assert models.get(LOCAL_OWNER, opened.artifact).path == str(path)


@pytest.mark.parametrize(
    ("host", "secret", "body", "status"),
    [
        ("127.0.0.1", "right", b'{"path": "/nowhere/m.onnx"}', 422),
        ("127.0.0.1", "wrong", b'{"path": "/nowhere/m.onnx"}', 403),
        ("127.0.0.1", "", b'{"path": "/nowhere/m.onnx"}', 403),
        ("192.168.0.9", "right", b'{"path": "/nowhere/m.onnx"}', 403),
        ("127.0.0.1", "right", b"not json", 400),
        ("127.0.0.1", "right", b'{"path": 3}', 400),
        ("127.0.0.1", "right", b"[" * 100_000, 400),
    ],
)
def test_only_this_machine_with_the_secret_may_hand_over_a_file(host, secret, body, status):
    held = workspace.current().instance
    given = held.secret if secret == "right" else secret
    client = TestClient(Starlette(routes=handed_over.routes), client=(host, 5))
    assert client.post(instance.OPEN, content=body, headers={instance.HEADER: given}).status_code == status
    assert client.get(instance.OPEN, headers={instance.HEADER: given}).status_code == 405


# --- spools and memory ------------------------------------------------------------------


def test_the_oldest_runs_make_room_but_never_those_at_work(tmp_path):
    spools = Spools(tmp_path, runs=2, nbytes=1000)
    for at, name in enumerate(["old", "busy", "mid", "new"]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "values.bin").write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (at, at))
    spools.hold("busy")
    spools.make_room()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["busy", "mid", "new"]
    (tmp_path / "new" / "values.bin").write_bytes(b"x" * 2000)
    os.utime(tmp_path / "new", (9, 9))
    spools.let_go("busy")
    spools.make_room()
    assert [p.name for p in tmp_path.iterdir()] == ["new"]
    for name in ("..", ".", "", "../x", "a/b"):
        with pytest.raises(NotFound):
            spools.path(name)
        spools.remove(name)
    assert spools.kept("new")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_returns_after_ten_models_were_opened_and_closed(tmp_path):
    import numpy as np

    paths = [write_model(tmp_path / f"{i}.onnx", np.full((3, 2), i, np.float32)) for i in range(10)]

    def once():
        for path in paths:
            artifact = opening.open_path(LOCAL_OWNER, str(path))
            models.derived(LOCAL_OWNER, artifact, "big", lambda model: np.ones(4 << 20))  # 32 MiB
            while models.status(LOCAL_OWNER, artifact).digest == "":
                time.sleep(0.01)
            opening.close(LOCAL_OWNER, artifact)

    once()
    before = resident()
    once()
    assert resident() - before < 20 << 20
    assert models.opened(LOCAL_OWNER) == []


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
