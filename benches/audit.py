"""Audit the dependencies: licences, sources, known vulnerabilities and SBOMs.

    python benches/audit.py [--offline] [--python INTERPRETER]

Each check is printed with its result. SBOMs (CycloneDX) are written to target/audit. The exit status is 1 if a check
fails, and 2 if a check could not run because its database is unreachable. `--offline` skips and lists the checks that
need a database.

`tox -e audit` provides the programs and the interpreter of an environment built from requirements/run.txt; deny.toml
and `tool.pip-licenses` in pyproject.toml list the permitted licences and sources.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT_FILES = ROOT / "target" / "audit"
LOCKED = ROOT / "requirements" / "run.txt"
OUT_OF_REACH = re.compile(
    r"(?:failed to (?:fetch|acquire|clone|update)|Could(?:n't| not) (?:connect|resolve)|ConnectionError|ConnectError|"
    r"Max retries exceeded|timed out|dns error|Network is unreachable|Temporary failure in name resolution|"
    r"unable to (?:load|fetch)|error sending request|ServiceError)[^\n]*",
    re.IGNORECASE,
)
"""Messages of the programs if a database is unreachable."""
NOT_HERE = "--offline was specified"
"""Message of cargo if it would have to download a crate; the lock file also names crates for other systems."""


@dataclass(frozen=True)
class AuditCheck:
    """One check: a program whose exit status is 0 if it finds no problem."""

    about: str
    command: tuple[str, ...]
    database: str = ""
    """Database that the check queries over the network; empty if it needs none."""


def checks(python: Path) -> tuple[AuditCheck, ...]:
    """Return all checks; `python` is the interpreter with the packages of the lock file."""
    deny = ("cargo", "deny", "--locked", "--log-level", "error")
    here = ("--offline", "check", "licenses", "sources", "bans")

    def sibling_program(program: str) -> str:
        return str(Path(sys.executable).with_name(program))

    licences = (sibling_program("pip-licenses"), "--python", str(python), "--format", "csv")
    weaknesses = (sibling_program("pip-audit"), "--require-hashes", "--disable-pip", "-r", str(LOCKED))
    inventory = (
        sibling_program("cyclonedx-py"),
        "requirements",
        str(LOCKED),
        "--of",
        "JSON",
        "-o",
        str(BUILT_FILES / "python.cdx.json"),
    )
    return (
        AuditCheck("crates of the lock file", ("cargo", "fetch", "--locked", "--quiet"), "the registry of crates"),
        AuditCheck("licences, sources and versions of crates", (*deny, *here)),
        AuditCheck("known weaknesses of crates", (*deny, "check", "advisories"), "the RustSec advisory database"),
        AuditCheck("licences of Python packages", licences),
        AuditCheck("known weaknesses of Python packages", weaknesses, "the package index's advisories"),
        AuditCheck("inventory of crates", ("cargo", "cyclonedx", "--format", "json", "--quiet")),
        AuditCheck("inventory of Python packages", inventory),
    )


def run(look: AuditCheck, offline: bool) -> tuple[int, str]:
    """Run a check and return its exit status and result."""
    if look.database and offline:
        return 0, f"NOT RUN (--offline): it needs {look.database}"
    try:
        done = subprocess.run(
            look.command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except FileNotFoundError:
        return 2, f"NOT RUN: there is no {look.command[0]}; tox -e audit installs it"
    if done.returncode == 0:
        return 0, "passed"
    if "no such command" in done.stdout:
        return 2, f"NOT RUN: there is no {' '.join(look.command[:2])}; tox -e audit installs it"
    if NOT_HERE in done.stdout:
        return 2, "NOT RUN: not all crates are here; `cargo fetch --locked` fetches them"
    if look.database and (match := OUT_OF_REACH.search(done.stdout)):
        return 2, f"NOT RUN: {look.database} is unreachable ({match[0].strip()})"
    return 1, "FAILED\n" + done.stdout.strip()


def gather() -> None:
    """Move the SBOMs of the crates to the common folder."""
    for file in ROOT.glob("crates/*/*.cdx.json"):
        shutil.move(file, BUILT_FILES / file.name)


def main(words: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offline", action="store_true", help="skip checks that need a database")
    parser.add_argument(
        "--python", type=Path, default=ROOT / ".venv" / "bin" / "python", help="interpreter with the packages"
    )
    options = parser.parse_args(words)
    BUILT_FILES.mkdir(parents=True, exist_ok=True)
    worst = []
    for look in checks(options.python):
        status, result = run(look, options.offline)
        worst.append(status)
        print(f"{look.about}: {result}", flush=True)
    gather()
    # A failed check outranks one that did not run.
    return 1 if 1 in worst else max(worst)


if __name__ == "__main__":
    sys.exit(main())
