"""Oldest supported Python of hosts, if this machine has it."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

OLDEST_VERSION = "3.8"


@cache
def _find_interpreter() -> str | None:
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    known = [
        shutil.which(f"python{OLDEST_VERSION}"),
        *sorted(home.glob(f"versions/{OLDEST_VERSION}.*/bin/python{OLDEST_VERSION}")),
    ]
    for each in known:
        # A name on the path may be a shim without a Python.
        if each is not None and subprocess.run([each, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(each)
    return None


def oldest_python() -> str:
    """Return the path of the oldest supported Python; skip the test without it."""
    found = _find_interpreter()
    if found is None:
        pytest.skip(f"needs Python {OLDEST_VERSION}")
    return found
