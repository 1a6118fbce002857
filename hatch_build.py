"""Build hook of the wheel: the manual pages, the programs of `crates/` and the name with their system and machine.

A wheel for Linux contains all programs, one for macOS the simulator and the reader of captures, which need no
Linux; for other systems it contains none. An editable installation uses the programs in `target/release`.
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
"""Names of the cargo targets by system (`sys.platform`)."""
PLACE = "qoslab/data/bin"
"""Folder of the programs in the wheel, as `qoslab.system.programs` expects it."""
PROGRAMS_FOLDER = "programs"
PAGES_FOLDER = "man1"
TARGET = "QOSLAB_TARGET"
"""Environment variable with the target of cargo-zigbuild, which builds the programs if it is set (`tox -e wheels`):
`x86_64-unknown-linux-gnu.2.17`; 2.17 is the oldest glibc they run with."""
LEAST = (2, 17)
"""glibc of the oldest tag that installers accept (PEP 600: manylinux_2_17)."""
MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64", "EM_RISCV": "riscv64", "EM_PPC64": "ppc64le"}
"""Machine in the name of a wheel by its name in an ELF header."""


class ProgramsHook(BuildHookInterface):
    """Build of the programs and the manual pages of a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the manual pages, build and strip the programs, and name the wheel after the systems they run on."""
        if version == "editable":
            return
        build_data["shared_data"][str(self._write_pages())] = "share/man/man1"
        target = os.environ.get(TARGET) or os.environ.get("CARGO_BUILD_TARGET")
        system = sys.platform if target is None else system_of(target)
        if system not in PROGRAMS:
            return
        built = self._cargo(PROGRAMS[system], target)
        copies = Path(self.directory) / PROGRAMS_FOLDER
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
        """Remove everything but the wheel."""
        for folder in (PROGRAMS_FOLDER, PAGES_FOLDER):
            shutil.rmtree(Path(self.directory) / folder, ignore_errors=True)

    def _write_pages(self) -> Path:
        """Write the manual pages into a folder, where `man` finds them next to the programs, and return it."""
        folder = Path(self.directory) / PAGES_FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        code = "import sys, pathlib; from qoslab.cli import man; man.write_pages(pathlib.Path(sys.argv[1]))"
        environment = os.environ | {"PYTHONPATH": str(Path(self.root) / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([sys.executable, "-P", "-c", code, str(folder)], env=environment, check=True)
        return folder

    def _cargo(self, programs: Iterable[str], target: str | None) -> Path:
        if shutil.which("cargo") is None:
            raise SystemExit("qoslab: building the wheel needs cargo (Rust 1.85 or newer); see https://rustup.rs")
        words = ["build"]
        environment = dict(os.environ)
        if target is not None or sys.platform != "linux":
            # By the linker: `strip` only reads programs of this machine.
            environment["CARGO_PROFILE_RELEASE_STRIP"] = "symbols"
        if os.environ.get(TARGET):
            words = ["zigbuild", "--target", str(target)]
            if shutil.which("cargo-zigbuild") is None:
                raise SystemExit(
                    f"qoslab: {TARGET} needs cargo-zigbuild and zig; `./qoslab test -e wheels` installs both"
                )
        bins = [word for name in programs for word in ("--bin", name)]
        command = ["cargo", *words, "--locked", "--release", "-q", *bins]
        done = subprocess.run(command, cwd=self.root, env=environment, check=False)
        if done.returncode != 0:
            raise SystemExit("qoslab: cargo could not build the programs; its messages are above")
        folder = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
        return Path(self.root) / folder / triple_of(target or "") / "release"


def triple_of(target: str) -> str:
    """Return the target in the form of rustc, without the glibc version that cargo-zigbuild accepts."""
    return re.sub(r"\.[0-9.]+$", "", target)


def system_of(target: str) -> str:
    """Return the system of a target (`sys.platform`); the last word of the target if it is not Linux or macOS."""
    words = triple_of(target).split("-")
    return next((system for system in PROGRAMS if system in words), words[-1])


def _strip(program: Path) -> None:
    """Remove the names of functions and lines, nine tenths of the file, which only debuggers read."""
    if shutil.which("strip") is not None:
        subprocess.run(["strip", "--strip-all", str(program)], check=True)


def macos_tag(target: str | None) -> str:
    """Return the macOS version and the machine that rustc builds for, as in a wheel's name: `macosx_11_0_arm64`."""
    words = [] if target is None else ["--target", triple_of(target)]
    asked = ["rustc", "--print", "deployment-target", *words]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise SystemExit(f"qoslab: rustc does not print a deployment target: {done.stderr or done.stdout}")
    machine = os.uname().machine if target is None else triple_of(target).partition("-")[0]
    return f"macosx_{found[1]}_{found[2]}_{'arm64' if machine == 'aarch64' else machine}"


def platform_tag(programs: Iterable[Path]) -> str:
    """Return the platform on which all programs run, as in a wheel's name: `manylinux_2_34_x86_64`.

    The version is the newest glibc that one of them requires; statically linked programs run with any C library.
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
    """Return the machine of an ELF file and the glibc versions of its symbols; none for a static one."""
    from elftools.elf.elffile import ELFFile

    with program.open("rb") as file:
        elf = ELFFile(file)
        number = elf.header["e_machine"]
        if number not in MACHINES:
            raise SystemExit(f"qoslab: {program.name} is for {number}, expected one of {', '.join(MACHINES)}")
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
