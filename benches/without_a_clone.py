#!/usr/bin/env python3
"""Measure the wheel: installation by uvx and by pipx, and a simulated run in an empty folder.

    python benches/without_a_clone.py --write

Builds the wheel of this working copy, with uv and cargo. Downloads happen before the clock starts, into a separate
cache; each of the two then installs from that cache and runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from page import head, print_summary

TOP = Path(__file__).resolve().parents[1]
EXPERIMENT = "policing-vs-shaping"
RUN = ("run", EXPERIMENT, "--lab", "simulated")
AIM_S = 60


@dataclass(frozen=True)
class Step:
    """A command and how long it took, in seconds."""

    words: str
    took_s: float


def time_step(words: list[str], shown: str, folder: Path, environment: dict[str, str]) -> Step:
    """Run the command and return its duration.

    `SystemExit` if it fails; status 1, values out of tolerance, is no failure.
    """
    begin = time.monotonic()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{shown}: status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return Step(shown, time.monotonic() - begin)


def steps(uv: str, scratch: Path) -> list[Step]:
    """Return all steps, the downloads first."""
    subprocess.run([uv, "build", "-q", "--wheel", "-o", scratch, TOP], check=True)
    (wheel,) = scratch.glob("*.whl")
    environment = os.environ | {
        "UV_CACHE_DIR": str(scratch / "cache"),
        "UV_TOOL_DIR": str(scratch / "tools"),
        "PIP_CACHE_DIR": str(scratch / "pip"),
        "PIPX_HOME": str(scratch / "pipx"),
        "PIPX_BIN_DIR": str(scratch / "bin"),
    }
    by_uv = [uv, "tool", "run", "--python", sys.executable]
    uvx, pipx = [*by_uv, "--from", str(wheel), "qoslab"], [*by_uv, "pipx"]

    def step(words: list[str], shown: str, folder: Path = scratch) -> Step:
        return time_step(words, shown, folder, environment)

    def run(program: list[str], shown: str) -> Step:
        folder = Path(tempfile.mkdtemp(dir=scratch))
        took = step([*program, *RUN], shown, folder)
        (report,) = folder.glob(f"runs/{EXPERIMENT}/2*/report.html")
        if not report.stat().st_size:
            sys.exit(f"{shown}: found no report")
        return took

    first = step([*uvx, "--version"], f"`uvx --from {wheel.name} qoslab --version`, with its downloads")
    for words in (["install", str(wheel)], ["uninstall", "qoslab"]):
        step([*pipx, *words], "pipx, for its downloads")
    for made in (scratch / "cache").glob("environments-*"):
        shutil.rmtree(made)
    return [
        first,
        run(uvx, f"`uvx --from … qoslab {' '.join(RUN)}`, installing included"),
        step([*pipx, "install", str(wheel)], f"`pipx install {wheel.name}`"),
        run([str(scratch / "bin/qoslab")], f"`qoslab {' '.join(RUN)}`"),
    ]


def section(found: list[Step]) -> str:
    """Return the section for the page of performance."""
    made = (
        "Source: `benches/without_a_clone.py`: the wheel without extras, in an empty folder, from a cache with all "
        f"downloads. The goal for an installation and a run is {AIM_S} s."
    )
    rows = [f"| {each.words} | {each.took_s:.1f} s |" for each in found]
    return "\n".join(
        ("## Without a clone: installed by uvx and pipx", "", head(made), "", "| command | took |", "|---|---|", *rows)
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="into docs/internals/performance.md")
    arguments = parser.parse_args()
    uv = TOP / ".qoslab/tools/bin/uv"
    with tempfile.TemporaryDirectory() as scratch:
        print_summary(section(steps(str(uv) if uv.exists() else "uv", Path(scratch))), write_it=arguments.write)


if __name__ == "__main__":
    main()
