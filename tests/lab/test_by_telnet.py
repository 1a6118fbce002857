"""A run whose router has no SSH: its proxy logs in by telnet."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import run
from test_device_failures import running_configuration
from test_external import EXPERIMENT_OF_IT, hosts, wait_until_clean
from test_run import EXPERIMENT, latest

from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from qoslab.virtual_lab.ios_routers import RouterLogins
from verdicts import newest_run, reasons_except_lateness, status_of

pytestmark = pytest.mark.lab


def test_run_reaches_its_router_by_telnet_only(
    clean: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "here.yml"
    with Lab.up(EXPERIMENT_OF_IT.topology, name=name, ways=RouterLogins(telnet=True)) as lab:
        expose_lab(lab, file)
        login = lab.ssh("R1")
        port = rf"\1ansible_port: {login.telnet}\n\1qoslab_reach: telnet"
        text, found = re.subn(rf"^( +)ansible_port: {login.port}$", port, file.read_text(), flags=re.MULTILINE)
        assert found == 1
        file.write_text(text)
        before, kept = running_configuration(lab), hosts(lab)
        words = ("run", str(EXPERIMENT), "--lab", str(file), "--duration", "3s", "--arm", "policed")
        status, output, errors = run(clean, *words)
        assert (latest(clean) / "cells/policed/1/cell.json").exists(), errors + output
        record = json.loads((latest(clean) / "cells/policed/1/cell.json").read_text())
        # The lateness of this machine as a host is not checked here.
        assert not reasons_except_lateness(record), errors
        assert status == status_of(newest_run(clean)), errors + output
        transcripts = [each.read_text() for each in latest(clean).glob("transcripts/*/R1.*.txt")]
        assert transcripts and all(f"to 127.0.0.1 port {login.telnet} by telnet\n" in each for each in transcripts)
        assert any("service-policy output Police" in each for each in transcripts)
        # Nothing sent in the clear is saved.
        secrets = [login.password.encode(), login.enable.encode()]
        files = [each for each in latest(clean).rglob("*") if each.is_file()]
        assert not [each for each in files for secret in secrets if secret in each.read_bytes()]
        assert running_configuration(lab) == before
        wait_until_clean(lab, kept)
