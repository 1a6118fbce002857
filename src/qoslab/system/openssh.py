"""File options for OpenSSH, with any file name (ssh_config(5))."""

from __future__ import annotations

import re
from pathlib import Path


def host_key_options(file: str | Path) -> tuple[str, ...]:
    """Return options of ssh that require the host key to be in this file, without a prompt."""
    return "-o", f"UserKnownHostsFile={_quote_file_name(file)}", "-o", "StrictHostKeyChecking=yes"


def identity_options(file: str | Path) -> tuple[str, ...]:
    """Return options of ssh to log in with only this private key."""
    return "-o", f"IdentityFile={_quote_file_name(file)}", "-o", "IdentitiesOnly=yes"


def _quote_file_name(file: str | Path) -> str:
    """Return the file name quoted: a blank would end it, and a percent sign would begin a token."""
    name = str(file).replace("%", "%%")
    if re.fullmatch(r"[\w%@+=:,./-]+", name):
        return name
    escaped = re.sub(r'(["\\])', r"\\\1", name)
    return f'"{escaped}"'
