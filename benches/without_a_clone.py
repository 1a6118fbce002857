#!/usr/bin/env python3
"""Measure the wheel: installed by uvx and by pipx, and a simulated run in an empty folder.

    python benches/without_a_clone.py --write

Builds the wheel of this working copy, with uv and cargo. What is downloaded comes once before the clock starts, into a
cache of its own; each of the two then installs from what is there and runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from page import head, tell

TOP = Path(__file__).resolve().parents[1]
EXPERIMENT = "policing-vs-shaping"
RUN = ("run", EXPERIMENT, "--lab", "simulated")
AIM_S = 60


@dataclass(frozen=True)
class Step:
    """A command and how long it took, in seconds."""

    words: str
    took_s: float


def timed(words: list[str], shown: str, folder: Path, environment: dict[str, str]) -> Step:
    """Run it. `SystemExit` where it fails; status 1, figures outside their tolerance, is no failure."""
    begin = time.monotonic()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{shown}: status {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return Step(shown, time.monotonic() - begin)


def steps(uv: str, scratch: Path) -> list[Step]:
    """All of them, the downloads first."""
    subprocess.run([uv, "build", "-q", "--wheel", "-o", scratch, TOP], check=True)
    (wheel,) = scratch.glob("*.whl")
    environment = os.environ | {
        "UV_CACHE_DIR": str(scratch / "cache"),
        "UV_TOOL_DIR": str(scratch / "tools"),
        "PIP_CACHE_DIR": str(scratch / "pip"),
        "PIPX_HOME": str(scratch / "pipx"),
        "PIPX_BIN_DIR": str(scratch / "bin"),
    }
    python = ["--python", sys.executable]
    uvx = [uv, "tool", "run", *python, "--from", str(wheel), "qoslab"]
    pipx = [uv, "tool", "run", *python, "pipx"]
    found = [
        timed(
            [*uvx, "--version"], f"`uvx --from {wheel.name} qoslab --version`, with its downloads", scratch, environment
        )
    ]
    subprocess.run([*pipx, "install", "-q", wheel], env=environment, check=True, capture_output=True)
    subprocess.run([*pipx, "uninstall", "qoslab"], env=environment, check=True, capture_output=True)
    subprocess.run(["rm", "-rf", scratch / "cache/environments-v2"], check=True)
    for name, words in (("uvx", uvx), ("pipx", [str(scratch / "bin/qoslab")])):
        folder = scratch / f"empty-{name}"
        folder.mkdir()
        if name == "pipx":
            found.append(timed([*pipx, "install", str(wheel)], f"`pipx install {wheel.name}`", folder, environment))
        shown = " ".join(("uvx --from …" if name == "uvx" else "", "qoslab", *RUN)).strip()
        found.append(
            timed([*words, *RUN], f"`{shown}`{', installing included' if name == 'uvx' else ''}", folder, environment)
        )
        (report,) = folder.glob(f"runs/{EXPERIMENT}/2*/report.html")
        if not report.stat().st_size:
            sys.exit(f"{name}: found no report")
    return found


def section(found: list[Step]) -> str:
    """For the page of performance."""
    made = (
        "Made by `benches/without_a_clone.py`: the wheel without extras, in an empty folder, from a cache that holds "
        f"what is downloaded. Aim of an installation and a run: {AIM_S} s."
    )
    rows = [f"| {each.words} | {each.took_s:.1f} s |" for each in found]
    return "\n".join(
        ("## Without a clone: installed by uvx and pipx", "", head(made), "", "| command | took |", "|---|---|", *rows)
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    arguments = parser.parse_args()
    uv = TOP / ".qoslab/tools/bin/uv"
    with tempfile.TemporaryDirectory() as scratch:
        tell(section(steps(str(uv) if uv.exists() else "uv", Path(scratch))), write_it=arguments.write)


if __name__ == "__main__":
    main()
