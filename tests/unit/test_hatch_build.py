"""Build targets: the programs of each, and the name of the wheel."""

from __future__ import annotations

import os
import platform
import re
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
sys.path.insert(0, str(TOP))
import hatch_build  # noqa: E402

EM_X86_64, EM_AARCH64, EM_S390 = 62, 183, 22
CARGO = """\
#!/bin/sh
echo "$CARGO_PROFILE_RELEASE_STRIP cargo $*" >> {log}
mkdir -p {built}
for name in qos-router qos-sim qos-pcap flood sla; do cp {program} {built}/$name; done
"""


def elf(machine: int) -> bytes:
    """Return the header of a statically linked program: 64 bits, little-endian, no segments, no sections."""
    return b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0
    )


def tool(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture(autouse=True)
def skip_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the manual pages, which tests/wheel and test_sdist.py build."""
    monkeypatch.setattr(hatch_build.ProgramsHook, "_write_pages", lambda self: Path("pages"))


@pytest.mark.parametrize(
    ("target", "triple", "system"),
    [
        ("x86_64-unknown-linux-gnu.2.17", "x86_64-unknown-linux-gnu", "linux"),
        ("aarch64-unknown-linux-musl", "aarch64-unknown-linux-musl", "linux"),
        ("aarch64-apple-darwin", "aarch64-apple-darwin", "darwin"),
        ("x86_64-pc-windows-gnu", "x86_64-pc-windows-gnu", "gnu"),
    ],
)
def test_build_target_is_parsed(target: str, triple: str, system: str) -> None:
    assert (hatch_build.triple_of(target), hatch_build.system_of(target)) == (triple, system)


@pytest.mark.parametrize(
    ("variable", "target", "machine", "command", "tag", "programs"),
    [
        (
            "QOSLAB_TARGET",
            "aarch64-unknown-linux-gnu.2.17",
            EM_AARCH64,
            "zigbuild --target aarch64-unknown-linux-gnu.2.17 --locked",
            "py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64",
            ["flood", "qos-pcap", "qos-router", "qos-sim", "sla"],
        ),
        (
            "CARGO_BUILD_TARGET",
            "x86_64-unknown-linux-musl",
            EM_X86_64,
            "build --locked",
            "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64",
            ["flood", "qos-pcap", "qos-router", "qos-sim", "sla"],
        ),
        (
            "CARGO_BUILD_TARGET",
            "aarch64-apple-darwin",
            EM_AARCH64,
            "build --locked",
            "py3-none-macosx_11_0_arm64",
            ["qos-pcap", "qos-sim"],
        ),
    ],
)
def test_wheel_is_built_for_a_target(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    target: str,
    machine: int,
    command: str,
    tag: str,
    programs: list[str],
) -> None:
    built = tmp_path / "target" / hatch_build.triple_of(target) / "release"
    (tmp_path / "program").write_bytes(elf(machine))
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    log = tmp_path / "log"
    tool(bin_, "cargo", CARGO.format(log=log, built=built, program=tmp_path / "program"))
    tool(bin_, "cargo-zigbuild", "#!/bin/sh\n")
    tool(bin_, "rustc", f'#!/bin/sh\n[ "$*" = "--print deployment-target --target {target}" ] && echo TARGET=11.0\n')
    for name in ("QOSLAB_TARGET", "CARGO_BUILD_TARGET", "CARGO_TARGET_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, target)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    hook = hatch_build.ProgramsHook(str(tmp_path), {}, None, None, str(tmp_path / "dist"), "wheel")  # type: ignore[arg-type]
    data: dict[str, Any] = {"force_include": {}, "shared_data": {}}
    hook.initialize("standard", data)
    assert (data["tag"], data["pure_python"]) == (tag, False)
    packed = {Path(inside).name: Path(file) for file, inside in data["force_include"].items()}
    assert sorted(packed) == programs
    assert {file.read_bytes() for file in packed.values()} == {elf(machine)}
    bins = " ".join(f"--bin {name}" for name in hatch_build.PROGRAMS[hatch_build.system_of(target)])
    # The linker removes parts that belong to another machine.
    assert log.read_text() == f"symbols cargo {command} --release -q {bins}\n"
    hook.finalize("standard", data, "")
    assert list((tmp_path / "dist").iterdir()) == []


@pytest.mark.parametrize(("version", "target"), [("editable", None), ("standard", "x86_64-pc-windows-gnu")])
def test_no_programs_are_built_for_a_working_copy_or_other_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, target: str | None
) -> None:
    monkeypatch.delenv("QOSLAB_TARGET", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if target is not None:
        monkeypatch.setenv("CARGO_BUILD_TARGET", target)
    hook = hatch_build.ProgramsHook(str(tmp_path), {}, None, None, str(tmp_path / "dist"), "wheel")  # type: ignore[arg-type]
    data: dict[str, Any] = {"force_include": {}, "shared_data": {}}
    hook.initialize(version, data)
    pages = {} if version == "editable" else {"pages": "share/man/man1"}
    assert data == {"force_include": {}, "shared_data": pages} and list(tmp_path.iterdir()) == []


def test_missing_requirements_of_zig_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "cargo", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("QOSLAB_TARGET", "aarch64-unknown-linux-gnu.2.17")
    hook = hatch_build.ProgramsHook(str(tmp_path), {}, None, None, str(tmp_path / "dist"), "wheel")  # type: ignore[arg-type]
    with pytest.raises(SystemExit, match=r"QOSLAB_TARGET needs cargo-zigbuild and zig"):
        hook.initialize("standard", {"force_include": {}, "shared_data": {}})


def test_wheel_name_has_the_newest_required_glibc(tmp_path: Path) -> None:
    machine = platform.machine()
    own = hatch_build.platform_tag([Path(os.path.realpath("/bin/ls"))])
    found = re.fullmatch(rf"manylinux_2_(\d+)_{machine}", own)
    assert found is not None and int(found[1]) >= 17
    static = tmp_path / "static"
    static.write_bytes(elf({"x86_64": EM_X86_64, "aarch64": EM_AARCH64}[machine]))
    assert hatch_build.platform_tag([static, Path(os.path.realpath("/bin/ls"))]) == own


@pytest.mark.parametrize(
    ("machines", "message"),
    [
        ((EM_X86_64, EM_AARCH64), "found programs for aarch64, x86_64, expected one kind of machine"),
        ((EM_S390,), "is for EM_S390, expected one of EM_X86_64, EM_AARCH64, EM_RISCV"),
    ],
)
def test_programs_for_another_platform_make_no_wheel(tmp_path: Path, machines: tuple[int, ...], message: str) -> None:
    files = [tmp_path / str(machine) for machine in machines]
    for file, machine in zip(files, machines, strict=True):
        file.write_bytes(elf(machine))
    with pytest.raises(SystemExit, match=message):
        hatch_build.platform_tag(files)


def test_compiler_without_macos_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "rustc", "#!/bin/sh\necho unknown target >&2\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SystemExit, match="does not print a deployment target: unknown target"):
        hatch_build.macos_tag("aarch64-apple-darwin")
