"""Taking away what a run does not need: network, new privileges, and life after its parent."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any, Final

_NO_NEW_PRIVS: Final = 38
"""``PR_SET_NO_NEW_PRIVS`` of prctl(2)."""

_NEW_USER: Final = 0x10000000
_NEW_NET: Final = 0x40000000
"""``CLONE_NEWUSER`` and ``CLONE_NEWNET`` of unshare(2)."""


def enter() -> dict[str, str]:
    """Give up what can be given up and say in words what holds.

    Must be called while the process has one thread: the kernel refuses a user namespace after that.
    """
    held = {"end with the app": "by the closed input" if os.name == "posix" else "by the job's watcher"}
    if sys.platform != "linux":
        return {**held, "network": "not held on this system", "privileges": "not held on this system"}
    libc = ctypes.CDLL(None, use_errno=True)
    held["network"] = _no_network(libc)
    done = libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    held["privileges"] = "no new ones (no_new_privs)" if done else "not held by this kernel"
    return held


def end_with_parent() -> None:
    """End this process when its standard input closes, which happens when the parent goes away."""
    threading.Thread(target=_watch_input, name="parent-watcher", daemon=True).start()


def _watch_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(3)


def _no_network(libc: Any) -> str:
    # As root a user namespace would take away the right to read other people's files.
    flags = _NEW_NET if os.geteuid() == 0 else _NEW_NET | _NEW_USER
    if libc.unshare(flags) == 0:
        return "none (own network namespace)"
    return f"not held: the kernel refused ({os.strerror(ctypes.get_errno())})"
