"""Killed runs on routers of an inventory: a later rescue restores them, and no secret remains."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from labs import IOS_ROUTED

from levels import long_cases
from qoslab.cli import main
from qoslab.run.devices.ansible_inventory import IosAccess, write_inventory
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.devices.state import RestoreState
from qoslab.run.workers.virtual.access import lab_router_access
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.ios_routers import RouterLogins

pytestmark = pytest.mark.lab

PUSHED = """\
policy-map Police
 class class-default
  police cir 1000000
!
interface FastEthernet0/1
 service-policy output Police
!
"""
RUN = """
import os, signal, sys
from pathlib import Path
from qoslab.model.experiment import Topology
from qoslab.results import Cell
from qoslab.run.devices.ansible.playbooks import AnsibleSession
from qoslab.run.devices.ansible_inventory import read_inventory
from qoslab.run.devices.pushed_routers import PushedRouters
from qoslab.run.devices.state import RestoreState
from qoslab.schema import CellIdentity
from qoslab.model.units import Duration

inventory, topology, pushed = Path(sys.argv[1]), Topology.model_validate_json(sys.argv[2]), sys.argv[3]
read_inventory(inventory)
state = RestoreState.for_inventory(inventory)
state.begin(inventory=inventory, run=Path("runs/a"), topology=topology)
session = AnsibleSession(inventory, before=state.folder)
session.start()
routers = PushedRouters(topology, session, state, lambda router: "", print)
routers.configure(Cell(Path("runs/a/cells/a/1"), CellIdentity("a", (), 1)), {"R1": pushed}, [], traffic=Duration(0))
print("pushed", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab.up(IOS_ROUTED, name=f"test-rescue-{os.getpid()}", ways=RouterLogins(telnet=True)) as lab:
        yield lab


def significant(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and "Current configuration" not in line]


@pytest.mark.parametrize("by_console", ["", *long_cases("of the inventory", "named")])
def test_rescue_restores_routers_after_a_killed_run(
    lab: Lab, by_console: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    inventory = tmp_path / "rack.json"
    access = {"R1": lab_router_access(lab)["R1"]}
    assert isinstance(access["R1"], IosAccess)
    write_inventory(inventory, access)
    own = ["username bob secret PLANTED-old", "snmp-server community PLANTED-c RO"]
    with CollectorProcess() as collector:
        collector.connect(access, known_hosts=lab.known_hosts())
        collector.configure("R1", own)
        before = collector.observe("R1", "show running-config").raw
        argv = [sys.executable, "-c", RUN, str(inventory), IOS_ROUTED.model_dump_json(by_alias=True), PUSHED]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.stdout, done.returncode) == ("pushed\n", -signal.SIGKILL), done.stderr
        assert "service-policy output Police" in collector.observe("R1", "show running-config").raw
        collector.configure("R1", ["ip host bob 10.9.9.9"])

        place = f"127.0.0.1:{lab.ssh('R1').telnet}"
        options = ["--console", f"R1={place}" if by_console == "named" else "R1"] if by_console else []
        if by_console:
            # Nobody can log in over the network.
            write_inventory(inventory, {"R1": replace(access["R1"], port=1)})
        if by_console == "of the inventory":
            known = json.loads(inventory.read_text())
            known["all"]["children"]["ios"]["hosts"]["R1"]["qoslab_console"] = place
            inventory.write_text(json.dumps(known))
        assert main(["lab", "rescue", str(inventory), *options]) == 0
        after = collector.observe("R1", "show running-config").raw
        collector.configure("R1", ["no ip host bob"])
    output = capsys.readouterr().err
    assert sorted(set(significant(after)) ^ set(significant(before))) == ["ip host bob 10.9.9.9"]
    assert "`ip host bob 10.9.9.9` is new" in output
    assert f"the routers of {inventory} are as they were before the run {tmp_path}/runs/a (" in output
    assert not RestoreState.for_inventory(inventory).folder.exists()
    # The saved files of the run and the output contain none of the router's secrets.
    kept = [file.read_text() for file in (tmp_path / "runs").rglob("*") if file.is_file()]
    assert any("snmp-server community <removed>" in text for text in kept)
    secrets = ("PLANTED-old", "PLANTED-c", lab.ssh("R1").password, lab.ssh("R1").enable)
    assert not [secret for secret in secrets for text in (*kept, output, done.stdout, done.stderr) if secret in text]
