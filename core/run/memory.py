"""Resident memory of a process as its kernel tells it."""

from __future__ import annotations

from core.limits import KIB


def resident(pid: int) -> tuple[int, int]:
    """Bytes resident now and at most so far; (0, 0) where the system does not say.

    Source: ``VmRSS`` and ``VmHWM`` of ``/proc/PID/status``, proc(5).
    """
    now = peak = 0
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                if line.startswith(b"VmHWM:"):
                    peak = int(line.split()[1]) * KIB
                elif line.startswith(b"VmRSS:"):
                    now = int(line.split()[1]) * KIB
    except (OSError, ValueError, IndexError):
        return 0, 0
    return now, peak
