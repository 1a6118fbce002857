"""Search for the programs of the crates, and messages about those that cannot run here."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from qoslab.cli import main
from qoslab.errors import MachineError
from qoslab.system import programs
from qoslab.system.programs import OWN_PROGRAMS, SIMULATOR, find_own_program, program_variable

HERE = os.uname().machine
OTHER = "aarch64" if HERE != "aarch64" else "x86_64"
EXPERIMENT = Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml"


def foreign(name: str, folder: Path) -> Path:
    """Return the same program with another processor in its header."""
    content = bytearray(find_own_program(name).read_bytes())
    content[18:20] = programs._MACHINES[OTHER].to_bytes(2, "little")
    made = folder / name
    made.write_bytes(content)
    made.chmod(0o755)
    return made


def test_kernel_refuses_a_program_for_another_processor(tmp_path: Path) -> None:
    """Run such a program: otherwise the other tests would prove nothing."""
    with pytest.raises(OSError, match="Exec format error"):
        os.posix_spawn(foreign("flood", tmp_path), ["flood", "--version"], os.environ)


@pytest.mark.parametrize("name", OWN_PROGRAMS)
def test_program_for_another_machine_is_reported_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = foreign(name, tmp_path)
    monkeypatch.setenv(program_variable(name), str(made))
    with pytest.raises(MachineError) as reported:
        find_own_program(name)
    assert (
        reported.value.message
        == f"{made} is built for {OTHER}, expected {name} for {HERE}, the architecture of this machine"
    )
    assert reported.value.hint == (
        f"Install the wheel for {HERE}, or build it in a working copy (cargo build --release) "
        f"and name it in {program_variable(name)}."
    )


@pytest.mark.parametrize("place", ["wheel", "path"])
def test_foreign_program_is_detected_from_every_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    made = foreign(SIMULATOR, tmp_path)
    monkeypatch.delenv(program_variable(SIMULATOR), raising=False)
    monkeypatch.setattr(programs, "find_checkout", lambda: None)
    monkeypatch.setattr(programs, "packed_path", lambda name: tmp_path if place == "wheel" else tmp_path / "nothing")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=f"{made} is built for {OTHER}"):
        find_own_program(SIMULATOR)


def test_foreign_program_ends_a_run_before_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = foreign(SIMULATOR, tmp_path)
    monkeypatch.setenv(program_variable(SIMULATOR), str(made))
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(EXPERIMENT), "--lab", "simulated", "--duration", "1s"]) == 2
    assert f"{made} is built for {OTHER}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [SIMULATOR]


def test_foreign_program_reads_no_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = foreign("qos-pcap", tmp_path)
    monkeypatch.setenv(program_variable("qos-pcap"), str(made))
    capture = Path(__file__).parents[1] / "recorded/capture/four-streams.pcapng"
    assert main(["import", str(capture), "--to", str(tmp_path / "made")]) == 2
    assert f"{made} is built for {OTHER}" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_executable_but_unreadable_program_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Remove the read permission in a way that also applies to root."""
    program = tmp_path / "a simulator"
    program.write_bytes(find_own_program(SIMULATOR).read_bytes())
    program.chmod(0o111)
    opened = Path.open

    def forbid(path: Path, *how: Any) -> Any:
        if path == program:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *how)

    monkeypatch.setattr(Path, "open", forbid)
    monkeypatch.setenv(program_variable(SIMULATOR), str(program))
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(EXPERIMENT), "--lab", "simulated", "--duration", "1s"]) == 2
    output = capsys.readouterr().err
    assert f"{program} cannot be read: Permission denied" in output and f"chmod a+r '{program}'" in output


def test_folder_is_not_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(program_variable(SIMULATOR), str(tmp_path))
    with pytest.raises(MachineError, match="not an executable file"):
        find_own_program(SIMULATOR)


def test_scripts_and_native_programs_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    for program in (script, find_own_program(SIMULATOR)):
        monkeypatch.setenv(program_variable(SIMULATOR), str(program))
        assert find_own_program(SIMULATOR) == program
