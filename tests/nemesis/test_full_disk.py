"""Runs with a full disk, for the run folder or for temporary files, which is enlarged afterwards.

    pytest tests/nemesis/test_full_disk.py --seeds 1-40

A seed determines lab, disk and free space. Any writing process of the run meets the full disk: the run, a router, or a
capturing program. The rules of the checker are those of the other trials.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from checker import ARGUMENTS, LABS, PAGE_B, UndisturbedRuns, check_cells, find_leftovers, resume_run
from commands import Command

from verdicts import newest_run, runs_of, status_of

pytestmark = pytest.mark.lab

STATUSES = {0, 1, 2, 3}
FULL_DISK = """
room=$1 disk=$2 kept=$3
shift 3
mount -t tmpfs -o size="$room" tmpfs "$disk" || exit 99
# Not as root of this namespace: a user is none.
unshare --user --map-user=USER --map-group=GROUP "$@"
status=$?
mount --options-mode=ignore -o remount,size=256m tmpfs "$disk" && cp -a "$disk" "$kept" || exit 98
exit $status
"""


def test_run_survives_a_full_disk_of_any_size(
    seed: int, clean: Path, undisturbed_run: UndisturbedRuns, tell: Callable[[str, str], None]
) -> None:
    draw = random.Random(seed)
    lab, disk = draw.choice(LABS), draw.choice(("runs", "tmp"))
    # As often below ten pages as above a hundred, because the first files are small.
    pages = round(math.exp(draw.uniform(0.0, math.log(undisturbed_run[lab].pages))))
    print(f"seed {seed}, {lab}: room for {pages} pages in {disk}")
    tell(lab, f"no room on the disk, of {'the run' if disk == 'runs' else 'temporary files'}")
    kept = clean / "kept"
    command = Command(clean, *ARGUMENTS, "--lab", lab, prefix=full_disk(clean, disk, pages, kept))
    status, output, errors = command.end()
    printed = f"\n{output}\n{errors}"
    assert status in STATUSES, printed
    assert "Traceback" not in printed and "defect" not in printed, printed
    if disk == "runs":
        (clean / "runs").rmdir()
        kept.rename(clean / "runs")
    else:
        assert [str(each) for each in kept.rglob("*")] == [], printed
        kept.rmdir()
    find_leftovers(clean, command.process.pid)
    for each in runs_of(clean):
        check_cells(each, lab, undisturbed_run[lab], printed)
    if status in (0, 1):
        assert status == status_of(newest_run(clean)), printed
    resume_run(clean, lab, undisturbed_run[lab])


def full_disk(clean: Path, disk: str, pages: int, kept: Path) -> tuple[str, ...]:
    """Return the prefix of a command that limits its disk; the written files are moved to `kept`."""
    (clean / "runs").mkdir()
    text = FULL_DISK.replace("USER", str(os.getuid())).replace("GROUP", str(os.getgid()))
    place = (clean / disk).resolve()
    own = ("unshare", "--user", "--map-root-user", "--mount")
    return (*own, "sh", "-c", text, "sh", str(pages * PAGE_B), str(place), str(kept))
