"""`ansible-playbook` without paramiko, whose import takes a third of its start.

Ansible imports paramiko to choose between it and the system's `ssh`. Routers are reached by ansible-pylibssh; without
that, paramiko is imported as usual.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Execute a playbook with the arguments of `ansible-playbook`."""
    if find_spec("pylibsshext") is not None:
        # Any import of it now raises ModuleNotFoundError, as if it were not installed.
        sys.modules["paramiko"] = None  # type: ignore[assignment]
    from ansible.cli.playbook import PlaybookCLI

    PlaybookCLI.cli_executor(["ansible-playbook", *sys.argv[1:]])


if __name__ == "__main__":
    main()
