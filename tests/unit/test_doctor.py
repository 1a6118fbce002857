"""Output of `qoslab doctor` on incomplete machines."""

from __future__ import annotations

import json
import shutil

import pytest

from qoslab.cli import doctor, main
from qoslab.system import extras


def test_missing_packages_of_a_lab_do_not_hide_other_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = {"lab": ["asyncssh", "pyroute2"]}
    for module in (doctor, extras):
        monkeypatch.setattr(module, "missing_packages", lambda extra: lacking.get(extra, []))
    assert main(["doctor", "--json"]) == 2
    checks = {each["name"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    lab = checks["virtual lab"]
    assert lab["state"] == "missing" and lab["found"].endswith("not installed: asyncssh, pyroute2")
    assert "whl[lab]" in lab["what_to_do"]
    assert checks["loopback"]["state"] == "ok"


@pytest.mark.parametrize(
    ("manager", "message"),
    [
        ("apt-get", {"tshark": "sudo apt-get install tshark", "ip": "sudo apt-get install iproute2"}),
        (
            "dnf",
            {
                "tshark": "sudo dnf install wireshark-cli",
                "tc": "sudo dnf install iproute iproute-tc",
                "chromium": "sudo dnf install chromium",
                "cargo": "sudo dnf install rust cargo",
            },
        ),
        ("pacman", {"dumpcap": "sudo pacman -S --needed wireshark-cli", "rustc": "sudo pacman -S --needed rust"}),
        ("", {"ssh": "install the equivalent of Debian's openssh-client"}),
    ],
)
def test_missing_packages_have_the_names_of_the_distribution(
    monkeypatch: pytest.MonkeyPatch, manager: str, message: dict[str, str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}" if name == manager else None)
    checks = {each.name: each for each in (*doctor._check_tools(), doctor._check_chromium(), *doctor._check_rust())}
    assert {each.state for each in checks.values()} == {"missing", "optional"}
    for name, command in message.items():
        assert checks[name].what_to_do.endswith(command)
    assert manager == "apt-get" or not any("apt-get" in each.what_to_do for each in checks.values())
