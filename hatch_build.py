"""Puts the programs of `crates/` into the wheel, and says in its name on which machines they run.

Only wheels for Linux have them; an editable installation uses those of the working copy's `target/release`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("qos-router", "qos-sim", "qos-pcap", "flood", "sla")
"""The programs, by the names under which cargo knows them."""
PLACE = "qoslab/data/bin"
"""Where `qoslab.programs` looks for them."""
LEAST = (2, 17)
"""The glibc of the oldest tag that installers know (PEP 600: manylinux_2_17)."""
MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_RISCV": "riscv64", "EM_PPC64": "ppc64le"}
"""As wheels call what an ELF header names."""


class ProgramsHook(BuildHookInterface):
    """Runs cargo before a wheel is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the programs, strip copies of them, have these packed, and name the wheel after what they need."""
        if version == "editable" or not sys.platform.startswith("linux"):
            return
        built = self._cargo()
        copies = Path(self.directory) / "programs"
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir(parents=True)
        for name in PROGRAMS:
            copy = Path(shutil.copy(built / name, copies / name))
            _strip(copy)
            build_data["force_include"][str(copy)] = f"{PLACE}/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(copies / name for name in PROGRAMS)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing but the wheel."""
        shutil.rmtree(Path(self.directory) / "programs", ignore_errors=True)

    def _cargo(self) -> Path:
        if shutil.which("cargo") is None:
            raise SystemExit("qoslab: building the wheel needs cargo (Rust 1.85 or newer); https://rustup.rs tells how")
        target = os.environ.get("CARGO_BUILD_TARGET")
        bins = [word for name in PROGRAMS for word in ("--bin", name)]
        done = subprocess.run(["cargo", "build", "--locked", "--release", "-q", *bins], cwd=self.root, check=False)
        if done.returncode != 0:
            raise SystemExit("qoslab: cargo could not build the programs; what it said stands above")
        folder = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
        return Path(self.root) / folder / (target or "") / "release"


def _strip(program: Path) -> None:
    """Names of functions and lines are nine tenths of a program; no one but a debugger reads them."""
    tool = os.environ.get("STRIP", "strip")
    if shutil.which(tool) is not None:
        subprocess.run([tool, "--strip-all", str(program)], check=True)


def platform_tag(programs: Iterable[Path]) -> str:
    """The machines on which all programs run, as in a wheel's name: `manylinux_2_34_x86_64`.

    It is the newest version of glibc that one of them asks for. Programs that are linked statically run everywhere.
    """
    needs = [_needs(program) for program in programs]
    machines = sorted({machine for machine, _ in needs})
    if len(machines) != 1:
        raise SystemExit(f"qoslab: found programs for {', '.join(machines)}, expected one kind of machine")
    versions = [version for _, found in needs for version in found]
    major, minor = max([LEAST, *versions])
    tag = f"manylinux_{major}_{minor}_{machines[0]}"
    return tag if versions else f"{tag}.musllinux_1_1_{machines[0]}"


def _needs(program: Path) -> tuple[str, list[tuple[int, int]]]:
    """The machine of an ELF file, and the versions of glibc whose symbols it takes; none where it is static."""
    from elftools.elf.elffile import ELFFile

    with program.open("rb") as file:
        elf = ELFFile(file)
        number = elf.header["e_machine"]
        if number not in MACHINES:
            raise SystemExit(f"qoslab: {program.name} is for {number}, for which there are no wheels")
        versions = list(_glibc(elf))
        if elf.get_section_by_name(".interp") is not None and not versions:
            raise SystemExit(f"qoslab: {program.name} needs another C library than glibc; link it statically")
        return MACHINES[number], versions


def _glibc(elf: Any) -> Iterator[tuple[int, int]]:
    section = elf.get_section_by_name(".gnu.version_r")
    for _, needed in section.iter_versions() if section is not None else ():
        for each in needed:
            word, _, version = each.name.partition("_")
            if word == "GLIBC" and version.replace(".", "").isdecimal():
                major, minor, *_ = map(int, version.split("."))
                yield major, minor
