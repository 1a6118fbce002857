"""What `qoslab doctor` says of a machine that lacks something."""

from __future__ import annotations

import json

import pytest

from qoslab import extras
from qoslab.cli import doctor, main


def test_without_the_packages_of_a_lab_all_else_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = {"lab": ["asyncssh", "pyroute2"]}
    for module in (doctor, extras):
        monkeypatch.setattr(module, "lacking", lambda extra: lacking.get(extra, []))
    assert main(["doctor", "--json"]) == 2
    checks = {each["name"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    lab = checks["virtual lab"]
    assert lab["state"] == "missing" and lab["found"].endswith("not installed: asyncssh, pyroute2")
    assert "whl[lab]" in lab["what_to_do"]
    assert checks["loopback"]["state"] == "ok"
