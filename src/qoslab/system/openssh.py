"""Files as OpenSSH takes them in its options, with any name (ssh_config(5))."""

from __future__ import annotations

import re
from pathlib import Path


def with_host_keys(file: str | Path) -> tuple[str, ...]:
    """Options of ssh that require the host key to be in this file, without a prompt."""
    return "-o", f"UserKnownHostsFile={_value(file)}", "-o", "StrictHostKeyChecking=yes"


def with_identity(file: str | Path) -> tuple[str, ...]:
    """Options of ssh: it logs in with this private key alone."""
    return "-o", f"IdentityFile={_value(file)}", "-o", "IdentitiesOnly=yes"


def _value(file: str | Path) -> str:
    """A blank would end the name, and a percent sign begin what stands for something else."""
    name = str(file).replace("%", "%%")
    if re.fullmatch(r"[\w%@+=:,./-]+", name):
        return name
    escaped = re.sub(r'(["\\])', r"\\\1", name)
    return f'"{escaped}"'
