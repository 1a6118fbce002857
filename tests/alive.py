"""Whether a process is there. In a container nobody may bury those whose parents have ended."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process is there and not merely unburied."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
