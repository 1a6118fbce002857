"""Third-party clients at virtual routers with IOS-XE and HQF: NAPALM and Netmiko, and Unicon for IOS-XE.

NAPALM and Netmiko have a separate environment: their dependencies conflict with the locked ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import run
from labs import topology
from test_foreign_packages import python
from test_iosd import session

from experiment_files import experiment_file
from qoslab.cli import main
from qoslab.virtual_lab import Lab
from verdicts import newest_run, reasons_except_lateness

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("foreign packages")]

MODELS = {"ISR4451": "GigabitEthernet0/0/", "2911": "GigabitEthernet0/"}
CLIENTS = """
import json, sys
import napalm
from netmiko import ConnectHandler
host, port, user, password, enable, kind = sys.argv[1:]
at = {"device_type": kind, "host": host, "port": int(port), "username": user, "password": password, "secret": enable}
shown = {}
with ConnectHandler(**at) as netmiko:
    netmiko.enable()
    shown["version"] = netmiko.send_command("show version")
    shown["archive"] = netmiko.send_command("show archive")
    netmiko.send_config_set(["policy-map FIRST", "class class-default", "shape average 5000000"])
    shown["configured"] = netmiko.send_command("show running-config")
    shown["saved"] = netmiko.save_config()
options = {"port": int(port), "secret": enable, "inline_transfer": True}
with napalm.get_network_driver("ios")(host, user, password, optional_args=options) as device:
    shown["facts"] = device.get_facts()
    shown["files"] = device.dest_file_system
    device.load_merge_candidate(config="policy-map SECOND\\n class class-default\\n  shape average 3000000\\n")
    device.commit_config()
    shown["merged"] = device.get_config()["running"]
    device.rollback()
    shown["rolled back"] = device.get_config()["running"]
    wanted = shown["rolled back"].replace("shape average 5000000", "shape average 6000000")
    device.load_replace_candidate(config=wanted)
    shown["differences"] = device.compare_config()
    device.commit_config()
    shown["replaced"] = device.get_config()["running"]
print(json.dumps(shown))
"""


@pytest.fixture(scope="module", params=MODELS)
def lab(request: pytest.FixtureRequest) -> Iterator[tuple[str, Lab]]:
    port = MODELS[request.param]
    described = topology(client="host", R1={"platform": "ios", "model": request.param}, server="host")(
        f"client eth0 10.1.0.2/24 - R1 {port}0 10.1.0.1/24",
        f"R1 {port}1 10.2.0.1/24 - server eth0 10.2.0.2/24",
    )
    with Lab.up(described, name=f"test-clients-{os.getpid()}") as made:
        yield request.param, made


@pytest.mark.long
@pytest.mark.slow
def test_netmiko_and_napalm_configure_merge_roll_back_and_replace(lab: tuple[str, Lab]) -> None:
    model, there = lab
    ssh, kind = there.ssh("R1"), "cisco_xe" if model == "ISR4451" else "cisco_ios"
    argv = [str(python("napalm")), "-W", "ignore", "-c", CLIENTS]
    words = (ssh.host, str(ssh.port), ssh.user, ssh.password, ssh.enable, kind)
    done = subprocess.run([*argv, *words], capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["archive"] == "Archive feature not enabled"
    assert "policy-map FIRST" in document["configured"] and "[OK]" in document["saved"]
    assert document["facts"]["hostname"] == "R1" and document["facts"]["vendor"] == "Cisco"
    assert document["files"] == ("bootflash:" if model == "ISR4451" else "flash:")
    assert "policy-map SECOND" in document["merged"] and "policy-map SECOND" not in document["rolled back"]
    assert "shape average 6000000" in document["differences"] and "shape average 6000000" in document["replaced"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("os_name", ["iosxe", "ios"])
def test_unicon_logs_in_and_genie_parses(lab: tuple[str, Lab], os_name: str) -> None:
    from pyats.topology import loader

    model, there = lab
    if os_name == "iosxe" and model != "ISR4451":
        pytest.skip("this router has IOS")
    ssh = there.ssh("R1")
    cli = {
        "protocol": "ssh",
        "ip": ssh.host,
        "port": ssh.port,
        "ssh_options": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
    }
    credentials = {
        "default": {"username": ssh.user, "password": ssh.password},
        "enable": {"password": ssh.enable},
    }
    described = {"R1": {"os": os_name, "type": "router", "credentials": credentials, "connections": {"cli": cli}}}
    device = loader.load({"testbed": {"name": "lab"}, "devices": described}).devices["R1"]
    device.connect(log_stdout=False, learn_hostname=True)
    try:
        device.configure("policy-map THIRD\n class class-default\n  shape average 4000000")
        assert "policy-map THIRD" in device.execute("show running-config")
        assert device.parse("show version")["version"]["hostname"] == "R1"
        assert f"{MODELS[model]}0" in device.parse("show interfaces")
        device.configure("no policy-map THIRD")
    finally:
        device.disconnect()


GENIE = """
import json, sys
from genie.libs.parser.utils.common import get_parser
from genie.testbed import load
from qoslab.genie.show_parser import register
register()
device = load(sys.argv[1]).devices["R1"]
device.connect(log_stdout=False, logfile="/dev/null")
device.configure(sys.argv[2])
command = "show policy-map interface"
found = {"os": device.os, "parser": get_parser(command, device)[0].__module__, "parsed": device.parse(command)}
found["learned"] = sorted(device.learn("qos").info)
device.disconnect()
print(json.dumps(found))
"""


@pytest.mark.long
@pytest.mark.slow
def test_genie_parses_ios_xe_by_the_testbed_of_the_lab(lab: tuple[str, Lab], tmp_path: Path) -> None:
    model, there = lab
    if model != "ISR4451":
        pytest.skip("this router has IOS")
    path = tmp_path / "testbed.yml"
    assert main(["testbed", "--lab", there.name, "--output", str(path)]) == 0
    done = subprocess.run([sys.executable, "-c", GENIE, str(path), EDGE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (found["os"], found["parser"]) == ("iosxe", "genie.libs.parser.iosxe.show_policy_map")
    out = found["parsed"]["GigabitEthernet0/0/1"]["service_policy"]["output"]["policy_name"]["PARENT"]["class_map"]
    assert out["class-default"]["shape_cir_bps"] == 5_000_000
    child = out["class-default"]["child_policy_name"]["CHILD"]["class_map"]
    assert child["VOICE"]["priority_level"] == 1 and "random_detect" in child["class-default"]
    assert found["learned"] == ["class_map", "interface", "policy_map"]


EXPERIMENT = """\
name: edge
title: An edge with IOS-XE
description: A shaper with two classes, in which voice has priority.
topology:
  nodes:
    client: {platform: host}
    R1: {platform: ios, model: ISR4451}
    server: {platform: host}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {node: client, interface: eth0, address: 10.1.0.2/24}
        - {node: R1, interface: GigabitEthernet0/0/0, address: 10.1.0.1/24}
    - name: wan
      rate: 100 Mb/s
      ends:
        - {node: R1, interface: GigabitEthernet0/0/1, address: 10.2.0.1/24}
        - {node: server, interface: eth0, address: 10.2.0.2/24}
duration: 3 s
traffic:
  - {name: voice, tool: flood, protocol: udp, from: client, to: server, rate: 1 Mb/s, size: 200 B, dscp: ef, port: 5001}
  - {name: rest, tool: flood, protocol: udp, from: client, to: server, rate: 8 Mb/s, size: 1000 B, port: 5002}
arms:
  - {name: edge, title: Edge, configure: {R1: {template: templates/edge.ios}}}
observe:
  - {node: R1, command: show policy-map interface, when: [after]}
"""
EDGE = """\
table-map COS
 map from 46 to 5
 default 0
class-map match-any VOICE
 match dscp ef
policy-map CHILD
 class VOICE
  priority level 1
  police cir 2000000
   account user-defined 24
 class class-default
  bandwidth remaining percent 100
  random-detect dscp-based
policy-map PARENT
 class class-default
  shape average 5000000
  service-policy CHILD
policy-map MARK
 class class-default
  set cos dscp table COS
interface GigabitEthernet0/0/0
 service-policy input MARK
interface GigabitEthernet0/0/1
 service-policy output PARENT
"""


@pytest.mark.long
@pytest.mark.slow
def test_run_configures_and_observes_a_router_with_ios_xe(clean: Path) -> None:
    file = experiment_file(clean, "edge.yml", EXPERIMENT)
    (clean / "templates").mkdir(exist_ok=True)
    (clean / "templates/edge.ios").write_text(EDGE)
    _, output, errors = run(clean, "run", str(file))
    cell = newest_run(clean) / "cells/edge/1"
    assert not reasons_except_lateness(json.loads((cell / "cell.json").read_text())), errors + output
    found = json.loads((cell / "observations/R1/after.show-policy-map-interface.json").read_text())
    out = found["GigabitEthernet0/0/1"]["service_policy"]["output"]["policy_name"]["PARENT"]["class_map"]
    child = out["class-default"]["child_policy_name"]["CHILD"]["class_map"]
    assert child["VOICE"]["packets"] > 1800 and "police" in child["VOICE"]
    assert child["class-default"]["packets"] > 2900 and "random_detect" in child["class-default"]
    running = (cell / "config/R1.running.ios").read_text()
    assert all(line in running for line in EDGE.splitlines() if not line.startswith("interface"))


def test_ios_xe_router_has_files() -> None:
    described = topology(client="host", R1={"platform": "ios", "model": "C8000V"}, server="host")(
        "client eth0 10.1.0.2/24 - R1 GigabitEthernet1 10.1.0.1/24",
        "R1 GigabitEthernet2 10.2.0.1/24 - server eth0 10.2.0.2/24",
    )
    with Lab.up(described, name=f"test-files-{os.getpid()}") as there:
        output = session(there, "dir", "show archive", "dir bootflash:/x", "show version")
    assert "Directory of bootflash:/\n" in output and "bytes free)" in output
    assert "Archive feature not enabled\n" in output
    assert "%Error opening bootflash:/x (No such file or directory)" in output
    assert "Cisco IOS XE Software, Version 17.09.04a" in output
