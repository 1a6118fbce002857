"""Programs that the comparisons with independent peers build and start."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

TOP = Path(__file__).parents[2]
FOLDER = TOP / "target/peers"
"""Compiled programs and the streams of packets."""
VALUES = FOLDER / "values"
"""The values of each comparison one by one."""


class MissingPeerError(Exception):
    """Peer that is not installed here; the message is the reason."""


def package_version(package: str) -> str:
    """Return the version of a Debian package; raise `MissingPeerError` if it is not installed."""
    if shutil.which("dpkg-query") is None:
        raise MissingPeerError(f"the Debian package {package} is not installed: there is no dpkg")
    shown = subprocess.run(
        ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    status, _, version = shown.stdout.partition(" ")
    if status != "installed":
        raise MissingPeerError(f"the Debian package {package} is not installed")
    return version


def require_programs(*names: str) -> None:
    """Raise `MissingPeerError` if a program is not installed."""
    for name in names:
        if shutil.which(name) is None:
            raise MissingPeerError(f"the program {name} is not installed")


def pkg_config(option: str, *packages: str) -> list[str]:
    """Return the compiler's arguments for libraries."""
    require_programs("pkg-config")
    asked = subprocess.run(["pkg-config", option, *packages], capture_output=True, text=True, check=False)
    if asked.returncode:
        raise MissingPeerError(f"pkg-config does not know {' '.join(packages)}: {asked.stderr.strip()}")
    return asked.stdout.split()


def compile_program(source: str, compiler: str, arguments: Sequence[str]) -> Path:
    """Compile a source file of this folder, unless the program is newer than it and all headers; return the program."""
    require_programs(compiler)
    path = Path(__file__).parent / source
    program = FOLDER / path.stem
    newest = max(each.stat().st_mtime for each in (path, *path.parent.glob("*.h")))
    if not program.exists() or program.stat().st_mtime < newest:
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-Wall", "-o", str(program), str(path), *arguments], check=True)
    return program


@functools.cache
def engine_program(name: str) -> Path:
    """Build an example of `crates/qos-core/examples`."""
    build = ["cargo", "build", "--locked", "--release", "-q", "-p", "qos-core", "--example", name]
    subprocess.run(build, cwd=TOP, check=True)
    return TOP / "target/release/examples" / name
