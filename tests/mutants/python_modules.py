"""Makes small changes to Python modules with mutmut, and keeps which of them their tests do not notice.

    python tests/mutants/python_modules.py [MUTANT ...]

`tool.mutmut` in pyproject.toml names the modules and the tests. What became of each module goes to `tried.csv` and
`survivors.toml`, and docs/mutants.md is written anew. A mutant's name, as mutmut has it, tries that one again.

Needs requirements/mutants.txt; `tox -e mutants-python` has them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import record
from record import Survivor, Tried

from written import ROOT, commit, today

COPIES = ROOT / "mutants"
"""Where mutmut works, and leaves what it found beside each module."""
KILLED = (1, 3)
TIMEOUT = (-24, 24, 36, 152, 255)
NOT_CHECKED = (None, 2)
MUTMUT = [sys.executable, "-m", "mutmut"]


def main() -> int:
    """Run from the command line; 1 where a change lives without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mutants", nargs="*", metavar="MUTANT", help="by mutmut's names; all without")
    options = parser.parse_args()
    if not options.mutants and COPIES.exists():
        # Of what it has tried mutmut asks nothing again, whatever became of the tests.
        shutil.rmtree(COPIES)
    done = subprocess.run([*MUTMUT, "run", *options.mutants], cwd=ROOT, check=False)
    if done.returncode:
        print("mutmut could not do its work: see what it says", file=sys.stderr)
        return 1
    at = commit()
    for file in sorted(COPIES.rglob("*.py.meta")):
        entry, lived = outcome(file, at)
        if entry.compiled:
            print(f"{entry.file}: {entry.compiled} changes, {entry.missed} live", flush=True)
            record.keep(entry, lived)
    return int(record.open_below("src/"))


def outcome(meta: Path, at: str) -> tuple[Tried, list[Survivor]]:
    """What became of a module's changes, of which those that were not tried count for nothing."""
    name = meta.relative_to(COPIES).as_posix().removesuffix(".meta")
    codes: dict[str, int | None] = json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
    lived = [key for key, code in codes.items() if code not in (*KILLED, *TIMEOUT, *NOT_CHECKED)]
    count = Counter(codes.values())
    caught, timeout = (sum(count[code] for code in group) for group in (KILLED, TIMEOUT))
    digest = record.digest(ROOT / name)
    entry = Tried(name, digest, caught, timeout, unviable=0, missed=len(lived), commit=at, day=today())
    return entry, [survivor(name, key) for key in lived]


def survivor(file: str, key: str) -> Survivor:
    """A change as mutmut shows it: the lines that go, and those that come."""
    shown = subprocess.run([*MUTMUT, "show", key], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE)
    return of_diff(file, shown.stdout)


def of_diff(file: str, diff: str) -> Survivor:
    """A change from a unified diff."""
    body = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    gone, come = (" ".join(line[1:].strip() for line in body if line.startswith(sign)) for sign in "-+")
    return Survivor(file, gone, f"becomes {come}")


if __name__ == "__main__":
    sys.exit(main())
