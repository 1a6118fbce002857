"""Command line to call qoslab again, from any folder."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program_name() -> str:
    """Return the command as the user can type it: `qoslab` if the shell finds this installation, else an absolute path.

    In a clone it is the script at its top, which also builds missing programs.
    """
    running, wrapper = Path(sys.argv[0]), Path(__file__).parents[3] / "qoslab"
    found = shutil.which("qoslab")
    if found is not None and Path(found).resolve() in (running.resolve(), wrapper.resolve()):
        return "qoslab"
    for each in (wrapper, running.absolute()):
        if each.is_file() and each.name == "qoslab" and os.access(each, os.X_OK):
            return shlex.quote(str(each))
    return f"{shlex.quote(sys.executable)} -m qoslab"
