"""Puts the programs of `crates/` into the wheel, and says in its name on which machines they run.

Linux gets all of them, macOS the simulator and the reader of captures, which need nothing of Linux; a wheel made
anywhere else has none. An editable installation uses those of the working copy's `target/release`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = {"linux": ("qos-router", "qos-sim", "qos-pcap", "flood", "sla"), "darwin": ("qos-sim", "qos-pcap")}
"""By system, as `sys.platform` calls it: the programs, by the names under which cargo knows them."""
PLACE = "qoslab/data/bin"
"""Where `qoslab.system.programs` looks for them."""
TARGET = "QOSLAB_TARGET"
"""The variable that names the machine they are to run on, as cargo-zigbuild does, which then builds them (`tox -e
wheels`): `x86_64-unknown-linux-gnu.2.17`, where 2.17 is the oldest glibc they shall run with."""
LEAST = (2, 17)
"""The glibc of the oldest tag that installers know (PEP 600: manylinux_2_17)."""
MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_RISCV": "riscv64", "EM_PPC64": "ppc64le"}
"""As wheels call what an ELF header names."""


class ProgramsHook(BuildHookInterface):
    """Runs cargo before a wheel is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the programs, strip copies of them, have these packed, and name the wheel after what they need."""
        target = os.environ.get(TARGET) or os.environ.get("CARGO_BUILD_TARGET")
        system = sys.platform if target is None else system_of(target)
        if version == "editable" or system not in PROGRAMS:
            return
        built = self._cargo(PROGRAMS[system], target)
        copies = Path(self.directory) / "programs"
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir(parents=True)
        for name in PROGRAMS[system]:
            copy = Path(shutil.copy(built / name, copies / name))
            if target is None and system == "linux":
                _strip(copy)
            build_data["force_include"][str(copy)] = f"{PLACE}/{name}"
        build_data["pure_python"] = False
        tag = macos_tag(target) if system == "darwin" else platform_tag(copies / name for name in PROGRAMS[system])
        build_data["tag"] = f"py3-none-{tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing but the wheel."""
        shutil.rmtree(Path(self.directory) / "programs", ignore_errors=True)

    def _cargo(self, programs: Iterable[str], target: str | None) -> Path:
        if shutil.which("cargo") is None:
            raise SystemExit("qoslab: building the wheel needs cargo (Rust 1.85 or newer); https://rustup.rs tells how")
        words = ["build"]
        environment = dict(os.environ)
        if target is not None or sys.platform != "linux":
            # The linker does it: `strip` knows the own machine's programs alone.
            environment["CARGO_PROFILE_RELEASE_STRIP"] = "symbols"
        if os.environ.get(TARGET):
            words = ["zigbuild", "--target", str(target)]
            if shutil.which("cargo-zigbuild") is None:
                raise SystemExit(
                    f"qoslab: {TARGET} needs cargo-zigbuild and zig; `./qoslab test -e wheels` brings both"
                )
        bins = [word for name in programs for word in ("--bin", name)]
        command = ["cargo", *words, "--locked", "--release", "-q", *bins]
        done = subprocess.run(command, cwd=self.root, env=environment, check=False)
        if done.returncode != 0:
            raise SystemExit("qoslab: cargo could not build the programs; what it said stands above")
        folder = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
        return Path(self.root) / folder / triple_of(target or "") / "release"


def triple_of(target: str) -> str:
    """A target as rustc calls it, without the glibc that cargo-zigbuild takes behind it."""
    return re.sub(r"\.[0-9.]+$", "", target)


def system_of(target: str) -> str:
    """The system of a target, as `sys.platform` calls it; the target's own word for others than Linux and macOS."""
    words = triple_of(target).split("-")
    return next((system for system in PROGRAMS if system in words), words[-1])


def _strip(program: Path) -> None:
    """Names of functions and lines are nine tenths of a program; no one but a debugger reads them."""
    if shutil.which("strip") is not None:
        subprocess.run(["strip", "--strip-all", str(program)], check=True)


def macos_tag(target: str | None) -> str:
    """The macOS and the machine for which rustc builds, as in a wheel's name: `macosx_11_0_arm64`."""
    words = [] if target is None else ["--target", triple_of(target)]
    asked = ["rustc", "--print", "deployment-target", *words]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise SystemExit(f"qoslab: rustc does not tell for which macOS it builds: {done.stderr or done.stdout}")
    machine = os.uname().machine if target is None else triple_of(target).partition("-")[0]
    return f"macosx_{found[1]}_{found[2]}_{'arm64' if machine == 'aarch64' else machine}"


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
