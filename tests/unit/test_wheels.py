"""Wheels for other machines are delivered only if they match their names."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from script import load_script

TOP = Path(__file__).parents[2]
OUTPUT = """
{name} is consistent with the following platform tag:
"{tag}".
"""


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    return load_script("benches/wheels.py")


def tool(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_auditwheel_must_confirm_the_tag_of_the_name(
    wheels: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    wheel = Path("qoslab-0.1.0-py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64.whl")
    for tag in ("manylinux_2_17_aarch64", "musllinux_1_1_aarch64"):
        tool(tmp_path, "auditwheel", f"cat << 'EOF'\n{OUTPUT.format(name=wheel.name, tag=tag)}EOF")
        assert wheels.judge(wheel) == tag
    tool(tmp_path, "auditwheel", f"cat << 'EOF'\n{OUTPUT.format(name=wheel.name, tag='manylinux_2_34_aarch64')}EOF")
    with pytest.raises(wheels.WheelError, match="auditwheel finds manylinux_2_34_aarch64"):
        wheels.judge(wheel)
    tool(tmp_path, "auditwheel", "echo no platform wheel >&2; exit 1")
    with pytest.raises(wheels.WheelError, match="auditwheel says: no platform wheel"):
        wheels.judge(wheel)


def test_wheel_check_names_a_missing_standard_library(
    wheels: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool(tmp_path, "rustc", f"echo {tmp_path}/lib")
    with pytest.raises(wheels.WheelError, match="rustup target add aarch64-unknown-linux-gnu"):
        wheels.standard_library("aarch64-unknown-linux-gnu")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libstd-1.rlib").touch()
    wheels.standard_library("aarch64-unknown-linux-gnu")
    tool(tmp_path, "rustc", "echo no such target >&2; exit 1")
    with pytest.raises(wheels.WheelError, match="no such target"):
        wheels.standard_library("sparc-none")


PROGRAM = """case "$1" in
  --version) echo {name} 0.1.0 ;;
  run) cat "$(echo $3 | sed s/.scenario./.result./)"{more} ;;
  *) cat {own} ;;
esac"""


@pytest.mark.parametrize(
    ("named", "more", "message"),
    [
        ("qos-sim", "", None),
        ("qos-sym", "", "qos-sim --version says b'qos-sym"),
        ("qos-sim", "; echo", "probe.scenario.json has another result than in the repository"),
    ],
)
def test_wheel_programs_must_give_the_expected_results(
    wheels: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, more: str, message: str | None
) -> None:
    wheel = tmp_path / "qoslab.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, shown in (("qos-sim", named), ("qos-pcap", "qos-pcap")):
            text = PROGRAM.format(name=shown, more=more if name == "qos-sim" else "", own="/dev/null")
            archive.writestr(f"qoslab/data/bin/{name}", f"#!/bin/sh\n{text}\n")
    (tmp_path / "target/release").mkdir(parents=True)
    tool(tmp_path / "target/release", "qos-pcap", "true")
    monkeypatch.setattr(wheels, "ROOT", tmp_path)
    if message is None:
        assert wheels.try_wheel(wheel, wheels.platform.machine()) == (
            "2 programs run here; results of 3 scenarios and of a capture are the same bytes"
        )
        tool(tmp_path / "target/release", "qos-pcap", "echo other")
        message = "four-streams.pcapng is read otherwise than here"
    with pytest.raises(wheels.WheelError, match=message):
        wheels.try_wheel(wheel, wheels.platform.machine())


def test_foreign_wheel_without_qemu_is_reported_as_untested(
    wheels: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert wheels.try_wheel(tmp_path / "qoslab.whl", "sparc") == "not run: no qemu-sparc-static here"
    tool(tmp_path, "qemu-sparc-static", "")
    assert wheels.runner("sparc") == [str(tmp_path / "qemu-sparc-static")]
