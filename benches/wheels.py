"""Build wheels with the programs, also for other machines; check them with auditwheel and run them.

    tox -e wheels                                            # x86-64 and aarch64, glibc 2.17 or newer
    tox -e wheels -- x86_64-unknown-linux-gnu.2.28 --to dist

Targets have the names of cargo-zigbuild; rustup installs the standard library (`rustup target add`), zig links.
Programs of another processor run under qemu's user emulation if it is installed (Debian: qemu-user-static, and the C
library in libc6-arm64-cross, named by QEMU_LD_PREFIX=/usr/aarch64-linux-gnu): each prints its version, and the
simulator's results and the columns of a capture must equal those of the native build, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("x86_64-unknown-linux-gnu.2.17", "aarch64-unknown-linux-gnu.2.17")
SCENARIOS = sorted((ROOT / "crates/qos-sim/tests/golden").glob("*.scenario.json"))
CAPTURE = ROOT / "tests/recorded/capture/four-streams.pcapng"
INSIDE = "qoslab/data/bin/"


class WheelError(Exception):
    """Wheel that cannot be built, or does not match its name."""


def standard_library(triple: str) -> None:
    """Check the standard library of the target; `WheelError` if rustc has none."""
    asked = ["rustc", "--print", "target-libdir", "--target", triple]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WheelError(f"{triple}: {done.stderr.strip()}")
    if not any(Path(done.stdout.strip()).glob("libstd-*")):
        raise WheelError(f"{triple}: found no standard library of Rust for it: rustup target add {triple}")


def zig() -> Path:
    """Return the compiler in the package `ziglang`; a build in an isolated environment would not find it."""
    import ziglang

    return Path(ziglang.__file__).parent / "zig"


def build(target: str, to: Path) -> Path:
    """Build a wheel for a target in the folder `to`."""
    with tempfile.TemporaryDirectory() as made:
        command = ["uv", "build", "-q", "--wheel", "--build-constraints", "requirements/build.txt", "-o", made]
        environment = {**os.environ, "QOSLAB_TARGET": target, "CARGO_ZIGBUILD_ZIG_PATH": str(zig())}
        done = subprocess.run([*command, "--python", sys.executable], cwd=ROOT, env=environment, check=False)
        if done.returncode != 0:
            raise WheelError(f"{target}: the wheel could not be built; why stands above")
        to.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(next(Path(made).glob("*.whl")), to))


def judge(wheel: Path) -> str:
    """Return the oldest platform on which auditwheel lets the programs run; `WheelError` if the name differs."""
    done = subprocess.run(["auditwheel", "show", str(wheel)], capture_output=True, text=True, check=False)
    output = " ".join(done.stdout.split())
    found = re.search(r'consistent with the following platform tag: "(\w+)"', output)
    if done.returncode != 0 or found is None:
        raise WheelError(f"{wheel.name}: auditwheel says: {done.stdout}{done.stderr}")
    named = wheel.stem.rpartition("-")[2].split(".")
    if found[1] not in named:
        raise WheelError(f"{wheel.name}: auditwheel finds {found[1]}")
    return found[1]


def runner(machine: str) -> list[str] | None:
    """Return the command prefix that runs a program of a machine here; None if there is none."""
    if machine == platform.machine():
        return []
    emulator = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    return None if emulator is None else [emulator]


def try_wheel(wheel: Path, machine: str) -> str:
    """Run the programs of a wheel. `WheelError` if one fails or gives other results."""
    before = runner(machine)
    if before is None:
        return f"not run: no qemu-{machine}-static here"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(INSIDE)]
        archive.extractall(folder, names)
        programs = {Path(name).name: Path(folder) / name for name in names}
        for program in programs.values():
            program.chmod(0o755)
            printed = output([*before, str(program), "--version"])
            if not printed.startswith(program.name.encode()):
                raise WheelError(f"{wheel.name}: {program.name} --version says {printed!r}")
        for scenario in SCENARIOS:
            expected = scenario.with_name(scenario.name.replace(".scenario.", ".result.")).read_bytes()
            if output([*before, str(programs["qos-sim"]), "run", "--pretty", str(scenario)]) != expected:
                raise WheelError(f"{wheel.name}: {scenario.name} has another result than in the repository")
        columns = output([*before, str(programs["qos-pcap"]), str(CAPTURE)])
        own = ROOT / "target/release/qos-pcap"
        compared = own.is_file()
        if compared and columns != output([str(own), str(CAPTURE)]):
            raise WheelError(f"{wheel.name}: {CAPTURE.name} is read otherwise than here")
    how = "here" if not before else f"by {Path(before[0]).name}"
    capture = " and of a capture" if compared else ""
    return f"{len(programs)} programs run {how}; results of {len(SCENARIOS)} scenarios{capture} are the same bytes"


def output(command: list[str]) -> bytes:
    """Return the output of a program. `WheelError` if it fails."""
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        printed = done.stderr.decode(errors="replace").strip()
        raise WheelError(f"{' '.join(command)}: ended with status {done.returncode}: {printed}")
    return done.stdout


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"[default: {' '.join(TARGETS)}]")
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="folder of the wheels [default: dist]")
    options = parser.parse_args()
    failed = False
    for target in options.targets or TARGETS:
        triple = re.sub(r"\.[0-9.]+$", "", target)
        try:
            standard_library(triple)
            wheel = build(target, options.to)
            oldest = judge(wheel)
            ran = try_wheel(wheel, triple.partition("-")[0])
        except WheelError as error:
            print(f"wheels: {error}", file=sys.stderr)
            failed = True
            continue
        print(f"{wheel.name}: auditwheel finds {oldest}; {ran}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
