"""Installation of system packages: the command of this distribution, and its package names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

ELSEWHERE = {
    "cargo": ("cargo", "rust"),
    "gcc": ("gcc", "gcc"),
    "iproute2": ("iproute,iproute-tc", "iproute2"),
    "iputils-ping": ("iputils", "iputils"),
    "libc6-dev": ("glibc-devel", "glibc"),
    "openssh-client": ("openssh-clients", "openssh"),
    "openssh-server": ("openssh-server", "openssh"),
    "python3": ("python3", "python"),
    "python3-venv": ("python3", "python"),
    "rust-clippy": ("clippy", "rust"),
    "rustc": ("rust", "rust"),
    "rustfmt": ("rustfmt", "rust"),
    "tshark": ("wireshark-cli", "wireshark-cli"),
}
"""Names of Debian packages on Fedora and on Arch, as in the script `qoslab`, which starts without Python."""
MANAGERS = (("dnf", "sudo dnf install", 0), ("pacman", "sudo pacman -S --needed", 1))
"""Package managers of other distributions: program, command, and column in `ELSEWHERE`."""


def install_command(*packages: str) -> str:
    """Return the command that installs Debian packages, or their equivalents on this distribution."""
    if shutil.which("apt-get"):
        return f"sudo apt-get install {' '.join(packages)}"
    for program, command, column in MANAGERS:
        if shutil.which(program):
            return f"{command} {' '.join(dict.fromkeys(_package_names(packages, column)))}"
    return f"install the equivalent of Debian's {', '.join(packages)}"


def _package_names(packages: tuple[str, ...], column: int) -> Iterator[str]:
    for package in packages:
        yield from ELSEWHERE[package][column].split(",") if package in ELSEWHERE else [package]
