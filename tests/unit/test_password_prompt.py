"""Prompts for passwords missing from the inventory: once, on a terminal only, and never printed."""

from __future__ import annotations

import getpass
import subprocess
import sys
from pathlib import Path

import pytest

from qoslab.cli import main
from qoslab.cli.places import open_sweep
from qoslab.results.redaction import KNOWN
from qoslab.run.devices.ansible_inventory import IosAccess, read_inventory
from qoslab.run.devices.password_prompt import prompt_for_passwords
from qoslab.run.devices.state import RestoreState

RACK = """\
ios:
  vars: {ansible_user: ann}
  hosts:
    R1: {ansible_host: 192.0.2.1}
    R2: {ansible_host: 192.0.2.2, ansible_ssh_pass: it-is-there-2, ansible_become_pass: this-as-well-2}
    R3: {ansible_host: 192.0.2.3, ansible_password: it-is-there-3}
    R4: {ansible_host: 192.0.2.4}
"""


def passwords_by_router(source: Path) -> dict[str, tuple[str | None, str | None]]:
    found = read_inventory(source)
    return {name: (each.password, each.enable) for name, each in found.items() if isinstance(each, IosAccess)}


def test_missing_passwords_are_requested_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rack = tmp_path / "rack.yml"
    rack.write_text(RACK)
    before = passwords_by_router(rack)
    text = {
        "Password for ann on R1 (empty: use a key): ": "typed-password-1",
        "Enable secret for R1 (empty: none): ": "typed-secret-1",
        "Enable secret for R3 (empty: none): ": "",
    }
    monkeypatch.setattr(getpass, "getpass", lambda prompt: text.pop(prompt))
    prompt_for_passwords(rack, ("R1", "R2", "R3"))
    assert text == {}
    assert passwords_by_router(rack) == {
        **before,
        "R1": ("typed-password-1", "typed-secret-1"),
    }
    assert before["R3"] == ("it-is-there-3", None) and before["R4"] == (None, None)
    # The same inventory under another name.
    monkeypatch.chdir(tmp_path)
    assert passwords_by_router(Path("rack.yml")) == passwords_by_router(rack)
    assert KNOWN.hidden("R1 has typed-password-1 and typed-secret-1") == "R1 has <removed> and <removed>"


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", ["check", "rescue"])
def test_passwords_are_not_requested_without_a_terminal(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rack = tmp_path / "rack.yml"
    rack.write_text("all: {children: {ios: {hosts: {R1: {}}}, host: {hosts: {client: {}, server: {}}}}}\n")
    words = ["lab", command, str(rack), "--ask"]
    if command == "check":
        words.append("policing-vs-shaping")
    else:
        topology = open_sweep("policing-vs-shaping", [])[1].experiment.topology
        RestoreState.for_inventory(rack).begin(inventory=rack, run=tmp_path / "runs/a", topology=topology)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("qoslab")), *words],
        cwd=tmp_path,
        input="typed-blindly\n",
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.splitlines() == [
        "qoslab: found no terminal to ask for passwords, expected one for --ask",
        "  Let the inventory read them from a vault, the environment or a keyring (docs/real-routers.md).",
    ]


def test_lab_without_passwords_requests_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "policing-vs-shaping", "--lab", "simulated", "--ask"]) == 2
    assert "found --ask for simulation, expected --lab with an inventory" in capsys.readouterr().err
