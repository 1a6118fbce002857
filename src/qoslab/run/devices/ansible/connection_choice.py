"""Choice of the connection helper that Ansible starts before each task: qoslab's or its own.

qoslab's helper (`connection`) uses a protocol inside ansible-core. It is chosen for releases with which it was
compared; with any other release, Ansible keeps its own helper, which is slower and always correct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from qoslab.run.devices.ansible import connection

SUPPORTED_RELEASES = ("2.19", "2.20", "2.21")
"""Releases of ansible-core with which `connection` was compared."""


@dataclass(frozen=True)
class Helper:
    """Chosen helper: variables for Ansible's environment, and a note for the run if it is Ansible's own helper."""

    variables: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def choose() -> Helper:
    """Return the helper for the installed ansible-core."""
    release = version("ansible-core")
    if ".".join(release.split(".")[:2]) not in SUPPORTED_RELEASES:
        return Helper(
            note=f"Ansible's own connection helper is used, some seconds slower in each arm: the helper of "
            f"qoslab was tested with ansible-core {', '.join(SUPPORTED_RELEASES)}, but {release} is installed"
        )
    import ansible

    own = Path(ansible.__file__).parent / "cli" / "scripts" / "ansible_connection_cli_stub.py"
    if not own.exists():
        return Helper(note=f"Ansible's own connection helper is used, some seconds slower in each arm: no {own}")
    return Helper({connection.VARIABLE: str(Path(connection.__file__).resolve()), connection.ORIGINAL: str(own)})
