"""Choice of the connection helper that Ansible starts before each task: ours, or its own.

Ours (`connection`) speaks a protocol inside ansible-core. It is chosen for releases that it was compared with; with
any other Ansible keeps its own, which is slower and always right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from qoslab.run.devices.ansible import connection

COMPARED = ("2.19", "2.20", "2.21")
"""Releases of ansible-core whose helper and connection process `connection` was compared with."""


@dataclass(frozen=True)
class Helper:
    """The choice: what Ansible's environment gets, and a note for the run where it is Ansible's own helper."""

    variables: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def choose() -> Helper:
    """The helper for the installed ansible-core."""
    release = version("ansible-core")
    if ".".join(release.split(".")[:2]) not in COMPARED:
        return Helper(
            note=f"Ansible's own connection helper is used, some seconds slower in each arm: ours was compared with "
            f"ansible-core {', '.join(COMPARED)}, and {release} is installed"
        )
    import ansible

    own = Path(ansible.__file__).parent / "cli" / "scripts" / "ansible_connection_cli_stub.py"
    if not own.exists():
        return Helper(note=f"Ansible's own connection helper is used, some seconds slower in each arm: no {own}")
    return Helper({connection.VARIABLE: str(Path(connection.__file__).resolve()), connection.ORIGINAL: str(own)})
