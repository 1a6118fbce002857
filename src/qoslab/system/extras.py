"""Optional parts of the installation: extras of the package, each a set of Python packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

from qoslab.errors import MachineError

PURPOSE = {
    "lab": "the virtual lab",
    "devices": "configuring and observing routers",
    "cluster": "running cells on a Dask cluster",
    "notebook": "JupyterLab",
    "figures": "drawing figures for papers",
    "keyring": "taking passwords of inventories from the desktop's keyring",
}
"""Purpose of each extra; its packages are in pyproject.toml."""


def extra_packages(extra: str | None) -> Iterator[str]:
    """Yield the distributions that an extra needs; for None, those that qoslab always needs."""
    for requirement in metadata.requires("qoslab") or []:
        name, _, marker = requirement.partition(";")
        named = re.search(r"extra == ['\"]([a-z]+)['\"]", marker)
        if (named[1] if named else None) == extra:
            yield re.split(r"[^A-Za-z0-9._-]", name.strip(), maxsplit=1)[0]


def missing_packages(extra: str | None) -> list[str]:
    """Return the missing distributions of `packages`."""
    return [name for name in extra_packages(extra) if not _is_installed(name)]


def require_extra(extra: str) -> None:
    """Raise `MachineError` if a package of an extra is missing."""
    if names := missing_packages(extra):
        raise MachineError(
            f"{PURPOSE[extra]} needs Python packages that are not installed: {', '.join(names)}",
            hint=f"{extra_install_command(extra)}, or start ./qoslab in a working copy to install everything.",
        )


def extra_install_command(extra: str | None) -> str:
    """Return the command that installs an extra, or the packages that qoslab always needs. It uses the wheel, as a
    package index has no qoslab, or one by another author.
    """
    return "pip install qoslab-….whl" if extra is None else f"pip install 'qoslab-….whl[{extra}]'"


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
