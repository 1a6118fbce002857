"""Takes back one mend of a weakness after another, in a copy, and asks whether the tests that hold it fail.

`tox -e mends` runs it; `--only WORD` takes those whose weakness or danger has the word in it, `--dangers` tells which
mends stand against which danger, and takes nothing back. Ends with 1 where a mend can go without a test that fails,
with 2 where tests fail before anything is taken back, or a mend is not found any more. Mends whose tests this machine
or this user has to skip are not tried, which is said.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

from mend import DANGERS

from mends import MENDS

ROOT = Path(__file__).parents[2]
FAILED = 1
"""Exit status of pytest where tests failed; others say that it could not run them."""
SKIPPED = -1
"""In place of an exit status: no test failed, and none was run."""
SECONDS = 300
"""What takes longer hangs, which does not go unnoticed."""
BUILDING = 6
"""So many times as long the first run of tests may take, which builds crates."""


def run(tests: str, top: Path, seconds: float = SECONDS) -> int:
    """The exit status of these tests with the code of the folder: 0, `FAILED`, or another one; or `SKIPPED`."""
    environment = {**os.environ, "PYTHONPATH": str(top / "src"), "CARGO_TARGET_DIR": str(ROOT / "target/mends")}
    if tests.startswith("tests/"):
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", tests]
    else:
        crate, _, name = tests.partition(":")
        command = ["cargo", "test", "--locked", "-q", "-p", crate, name]
    # A session of its own: workers and labs of the tests end with them.
    with subprocess.Popen(
        command, cwd=top, env=environment, stdout=PIPE, stderr=PIPE, text=True, start_new_session=True
    ) as tried:
        try:
            output, errors = tried.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return FAILED
        finally:
            with suppress(ProcessLookupError):
                os.killpg(tried.pid, signal.SIGKILL)
    if "test result: FAILED" in output:  # cargo's own status is that of a build that failed, too
        return FAILED
    if tried.returncode == 0 and not any(map(int, re.findall(r"\b(\d+) passed", output))):
        return SKIPPED
    if tried.returncode not in (0, FAILED):
        print(output[-2000:], errors[-2000:])
    return tried.returncode


def main() -> int:
    """Take back each mend."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="those whose weakness or danger has this word in it")
    parser.add_argument("--dangers", action="store_true", help="tell which mends stand against which danger, and end")
    arguments = parser.parse_args()
    only = arguments.only
    chosen = [mend for mend in MENDS if only in mend.weakness or only in mend.danger]
    if not chosen:
        parser.error(f"found no weakness and no danger with {only!r}, expected a word of one")
    if arguments.dangers:
        for danger in DANGERS:
            print(f"{danger}:")
            print(*(f"    {mend.weakness}" for mend in chosen if mend.danger == danger), sep="\n")
        return 0
    worst = 0
    with tempfile.TemporaryDirectory(prefix="qoslab-mends-") as folder:
        top = Path(folder) / "qoslab"
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, top], check=True)
        (top / "target").mkdir()
        (top / "target/release").symlink_to(ROOT / "target/release")
        skipped = set()
        for tests in dict.fromkeys(mend.tests for mend in chosen):
            status = run(tests, top, BUILDING * SECONDS)
            if status == SKIPPED:
                skipped.add(tests)
            elif status != 0:
                print(f"fail with all mends in place: {tests}")
                return 2
        for mend in chosen:
            if mend.tests in skipped:
                print(f"not tried, its tests are skipped here: {mend.weakness} ({mend.path}; {mend.tests})")
                continue
            path = top / mend.path
            text = path.read_text(encoding="utf-8")
            try:
                path.write_text(mend.taken_back(text), encoding="utf-8")
            except ValueError as error:
                print(error)
                return 2
            status = run(mend.tests, top)
            path.write_text(text, encoding="utf-8")
            names = {0: "NOT NOTICED", FAILED: "noticed", SKIPPED: "tests were skipped"}
            said = names.get(status, f"tests did not run (status {status})")
            print(f"{said}: {mend.weakness} ({mend.path}; {mend.tests})", flush=True)
            worst = max(worst, 0 if status == FAILED else 1)
    return worst


if __name__ == "__main__":
    sys.exit(main())
