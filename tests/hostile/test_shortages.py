"""Commands on a machine that lacks something: status 2 with the name of the missing thing, or the usual result.

The status is never 1, a verdict, unless the command without the shortage has it, and never a defect of qoslab; nothing
stays in the folder for temporary files.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import corpus_runs
import pytest
from corpus_foreign import CSV

EXPERIMENT = Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml"
COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("list",),
    "validate": ("validate", str(EXPERIMENT)),
    "import": ("import", "a.csv", "--to", "made"),
    "verify": ("verify", "run"),
    "report": ("report", "run"),
    "run": ("run", str(EXPERIMENT), "--lab", "simulated", "--duration", "2s", "--arm", "policed"),
}
USUAL_LIMIT = {"list": (0,), "validate": (0,), "import": (0,), "verify": (3,), "report": (1,), "run": (0, 1, 3)}
"""Statuses without a shortage: the run is one without `run.json`, and has a value out of tolerance."""
SMALL_DISK = """
exec unshare --user --map-root-user --mount sh -c 'mount -t tmpfs -o size=16k tmpfs "$TMPDIR" && exec "$@"' sh "$@"
"""


@dataclass(frozen=True)
class Shortage:
    """Missing thing on a machine."""

    shell: str
    """Script that starts the command `"$@"`."""
    named: str
    """Regular expression of its name in a message; empty if nothing can be printed."""
    stops: tuple[str, ...] = ()
    """Commands that cannot succeed."""


EVERY_COMMAND = tuple(COMMANDS)
SHORTAGES: dict[str, Shortage] = {
    "150 MiB of address space": Shortage('ulimit -v 153600; exec "$@"', "memory", EVERY_COMMAND),
    "600 MiB of address space": Shortage('ulimit -v 614400; exec "$@"', "memory|threads"),
    "12 descriptors": Shortage('ulimit -n 12; exec "$@"', "Too many open files", ("run",)),
    "a full disk for temporary files": Shortage(SMALL_DISK, "No space left"),
    "files of 1 KiB": Shortage('ulimit -f 1; exec "$@"', "File too large", ("import", "report", "run")),
    "a full standard output": Shortage('exec "$@" >/dev/full', "No space left on device", ("list", "import", "verify")),
    "a full standard error": Shortage('exec "$@" 2>/dev/full', ""),
    "a closed standard output": Shortage('exec "$@" >&-', "found standard output closed", EVERY_COMMAND),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with input for all commands; `tmp` is for temporary files."""
    temporary = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    (tmp_path / "tmp").symlink_to(temporary)
    (tmp_path / "a.csv").write_bytes(CSV)
    (tmp_path / "experiments").mkdir()
    shutil.copy(EXPERIMENT, tmp_path / "experiments")
    shutil.copytree(corpus_runs.whole_run(), tmp_path / "run")
    yield tmp_path
    shutil.rmtree(temporary, ignore_errors=True)


@pytest.mark.sample(6)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shortage", SHORTAGES)
def test_shortage_of_resources_is_reported(folder: Path, shortage: str, command: str) -> None:
    lacking = SHORTAGES[shortage]
    # Buffered, regardless of the caller's environment: buffered output that cannot be written fails last.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    found = subprocess.run(
        [
            *("bash", "-c", lacking.shell, "bash"),
            *(sys.executable, "-P", "-m", "qoslab", *COMMANDS[command]),
        ],
        cwd=folder,
        env={**environment, "TMPDIR": str((folder / "tmp").resolve())},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    output = f"{found.returncode}\n{found.stdout}\n{found.stderr}"
    assert found.returncode in ((2,) if command in lacking.stops else (2, *USUAL_LIMIT[command])), output
    assert "Traceback" not in output and "defect of qoslab" not in output, output
    if found.returncode == 2 and lacking.named:
        assert re.search(lacking.named, found.stderr), output
    assert not list((folder / "tmp").iterdir()), output
