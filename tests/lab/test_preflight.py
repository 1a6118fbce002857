"""Preflight checks of a lab reached by SSH alone, with faults made as a user would."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from commands import run
from labs import topology
from ruamel.yaml import YAML
from test_external import state
from test_iosd import session

from levels import long_cases
from project_inventory import project_inventory
from qoslab.model.experiment import Topology
from qoslab.model.units import Rate
from qoslab.plan import make_plan
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.real.preflight import refusal_error
from qoslab.run.workers.external.preflight_command import CheckResult, check_lab
from qoslab.schema import load_sweep
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from verdicts import newest_run, reasons_except_lateness, status_of

pytestmark = pytest.mark.lab

FILE = Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml"
SWEEP = load_sweep(FILE, {})
EXPERIMENT, PLAN = SWEEP.experiment, make_plan(SWEEP)
ROUTER = {"platform": "ios", "model": "3725"}


@contextmanager
def exposed_lab(folder: Path, name: str, made: Topology) -> Iterator[tuple[Lab, Path]]:
    """Provide a lab and its inventory."""
    file = folder / "here.yml"
    with Lab.up(made, name=f"looks-{name}-{os.getpid()}") as lab:
        expose_lab(lab, file)
        yield lab, file


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    """Change to a folder with the experiment."""
    with exposed_lab(tmp_path_factory.mktemp("here"), "own", EXPERIMENT.topology) as lab:
        yield lab


@pytest.fixture(scope="module")
def collector() -> Iterator[CollectorProcess]:
    """Provide one collector for all tests."""
    with CollectorProcess() as collector:
        yield collector


@pytest.fixture(autouse=True)
def use_empty_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def running_configuration(lab: Lab, router: str, *lines: str) -> None:
    output = session(lab, "configure terminal", *lines, "end", router=router)
    assert "%" not in output, output


def text(checked: CheckResult) -> str:
    """Return the refusal of a run; empty if there is none."""
    refused = refusal_error(checked.found)
    return "" if refused is None else refused.message


@pytest.mark.long
def test_correct_lab_is_left_unchanged_by_preflight(here: tuple[Lab, Path], collector: CollectorProcess) -> None:
    lab, file = here
    before = [state(lab, host) for host in ("client", "server")], session(lab, "show running-config", "show arp")
    checked = check_lab(file, PLAN, collector)
    after = [state(lab, host) for host in ("client", "server")], session(lab, "show running-config", "show arp")
    assert after == before
    assert checked.found == ()
    assert [line.partition(", round")[0] for line in checked.description if "link" in line] == [
        "link lan: proven",
        "link wan: proven",
    ]
    assert "R1: 3725, release 12.4(15)T14" in checked.description


ADDRESS = "ip address 192.168.20.1 255.255.255.0"
CONFIGURED = {
    "port down": (
        ("interface Fa0/1", "shutdown"),
        ("interface Fa0/1", "no shutdown"),
        "R1: found FastEthernet0/1 shut down, expected it up for the link wan; enter `no shutdown` there",
    ),
    "half duplex": (
        ("interface Fa0/1", "duplex half"),
        ("interface Fa0/1", "no duplex"),
        "R1: found FastEthernet0/1 half duplex, expected full duplex; set both ends to `duplex full`, or both to auto",
    ),
    "wrong address": (
        ("interface Fa0/1", "ip address 192.168.20.9 255.255.255.0"),
        ("interface Fa0/1", ADDRESS),
        "R1: found 192.168.20.9/24 on FastEthernet0/1, expected 192.168.20.1/24; "
        "give it that address, or check whether it is the right interface",
    ),
    "wrong tag": (
        ("interface Fa0/1", "no ip address", "interface Fa0/1.30", "encapsulation dot1Q 30", ADDRESS),
        ("no interface Fa0/1.30", "interface Fa0/1", ADDRESS),
        "R1: found no address on FastEthernet0/1 (192.168.20.1/24 is on FastEthernet0/1.30), expected 192.168.20.1/24; "
        "give it that address, or check whether it is the right interface",
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("fault", CONFIGURED)
def test_preflight_names_the_wrong_configuration(
    here: tuple[Lab, Path], collector: CollectorProcess, fault: str
) -> None:
    lab, file = here
    wrong, right, expected = CONFIGURED[fault]
    running_configuration(lab, "R1", *wrong)
    try:
        assert text(check_lab(file, PLAN, collector)).splitlines() == [expected]
    finally:
        running_configuration(lab, "R1", *right)


@pytest.mark.long
def test_preflight_refuses_traffic_over_the_management_nic(here: tuple[Lab, Path], collector: CollectorProcess) -> None:
    lab, file = here
    card = "ip link add mgmt0 type veth peer far; ip link set far up; ip link set mgmt0 up"
    card += "; ip addr add 192.168.20.77/25 dev mgmt0"
    lab.run("client", ["sh", "-c", card], check=True)
    try:
        assert text(check_lab(file, PLAN, collector)).splitlines() == [
            "client: found the route to 192.168.20.1 through mgmt0, expected it through eth0; fix the route to "
            "192.168.20.0/25",
            "client: found the route to 192.168.20.2 through mgmt0, expected it through eth0; fix the route to "
            "192.168.20.0/25",
        ]
    finally:
        lab.run("client", ["ip", "link", "del", "mgmt0"], check=True)


@pytest.mark.long
def test_preflight_names_a_program_that_cannot_run_on_a_host(
    here: tuple[Lab, Path], collector: CollectorProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, file = here
    plan = make_plan(load_sweep(FILE.with_name("token-arithmetic.yml"), {"topology.links.wan.rate": "100 Mb/s"}))
    assert text(check_lab(file, plan, collector)) == ""
    # In the words of an older system's loader.
    flood = tmp_path / "flood"
    flood.write_text("#!/bin/sh\necho 'flood: libc.so.6: version GLIBC_2.34 not found' >&2\nexit 1\n")
    flood.chmod(0o755)
    monkeypatch.setenv("QOSLAB_FLOOD", str(flood))
    found = text(check_lab(file, plan, collector)).splitlines()
    assert [line.partition(", expected")[0] for line in found] == [
        f'{host}: found that flood does not run there ("flood: libc.so.6: version GLIBC_2.34 not found")'
        for host in ("client", "server")
    ]


def test_preflight_detects_swapped_ports(tmp_path: Path, collector: CollectorProcess) -> None:
    swapped = topology(client="host", R1=ROUTER, server="host")(
        "client eth0 192.168.10.2/24 - R1 FastEthernet0/1 192.168.10.1/24",
        "R1 FastEthernet0/0 192.168.20.1/24 - server eth0 192.168.20.2/24",
    )
    with exposed_lab(tmp_path, "swapped", swapped) as (lab, file):
        away = ("interface Fa0/0", "no ip address", "interface Fa0/1", ADDRESS)
        running_configuration(lab, "R1", *away, "interface Fa0/0", "ip address 192.168.10.1 255.255.255.0")
        assert text(check_lab(file, PLAN, collector)).splitlines() == [
            "link lan: found FastEthernet0/1 of R1 at eth0 of client, expected FastEthernet0/0 of R1; "
            "connect the cable there, or name the interfaces in the inventory",
            "link wan: found FastEthernet0/0 of R1 at eth0 of server, expected FastEthernet0/1 of R1; "
            "connect the cable there, or name the interfaces in the inventory",
        ]


@pytest.mark.long
def test_preflight_detects_a_wrong_vlan(tmp_path: Path, collector: CollectorProcess) -> None:
    client = {"platform": "host", "routes": [{"prefix": "0.0.0.0/0", "via": "192.168.10.1"}]}
    between = topology(client=client, SW={"platform": "ios", "model": "3750G"}, R1=ROUTER, server="host")(
        "client eth0 192.168.10.2/24 - SW GigabitEthernet1/0/1",
        "SW GigabitEthernet1/0/2 - R1 FastEthernet0/0 192.168.10.1/24",
        "R1 FastEthernet0/1 192.168.20.1/24 - server eth0 192.168.20.2/24",
    )
    with exposed_lab(tmp_path, "vlan", between) as (lab, file):
        assert text(check_lab(file, PLAN, collector)) == ""
        running_configuration(lab, "SW", "vlan 20", "exit", "interface Gi1/0/1", "switchport access vlan 20")
        assert text(check_lab(file, PLAN, collector)).splitlines() == [
            "link lan: found no answer for 192.168.10.1 at eth0 of client, expected FastEthernet0/0 of R1; "
            "check the cable and the VLANs of the switch ports in between",
        ]


@pytest.mark.long
def test_preflight_detects_a_missing_link(tmp_path: Path, collector: CollectorProcess) -> None:
    cut = topology(client="host", R1=ROUTER, server="host", other="host")(
        "client eth0 192.168.10.2/24 - R1 FastEthernet0/0 192.168.10.1/24",
        "server eth0 192.168.20.2/24 - other eth0 192.168.20.3/24",
    )
    with exposed_lab(tmp_path, "cut", cut) as (lab, file):
        running_configuration(lab, "R1", "interface Fa0/1", ADDRESS, "no shutdown")
        assert text(check_lab(file, PLAN, collector)).splitlines() == [
            "R1: found FastEthernet0/1 down, expected it up for the link wan; "
            "check whether the cable is in, and the other end is up",
        ]


@pytest.mark.long
def test_preflight_detects_a_wrong_device(tmp_path: Path, collector: CollectorProcess) -> None:
    other = topology(client="host", R1={"platform": "ios", "model": "2811"}, server="host")(
        "client eth0 192.168.10.2/24 - R1 FastEthernet0/0 192.168.10.1/24",
        "R1 FastEthernet0/1 192.168.20.1/24 - server eth0 192.168.20.2/24",
    )
    with exposed_lab(tmp_path, "device", other) as (_, file):
        assert text(check_lab(file, PLAN, collector)).splitlines() == [
            "R1: found a 2811, expected a 3725; check that it is the right device, or run with --set R1.model=2811",
            "R1: found release 12.4(24)T2 with hqf queueing, expected classic; "
            "load another release, or run with --set R1.generation=hqf",
        ]


@pytest.mark.long
def test_run_works_with_other_interface_names_on_the_router(tmp_path: Path, clean: Path) -> None:
    swapped = topology(client="host", R1=ROUTER, server="host")(
        "client eth0 192.168.10.2/24 - R1 FastEthernet0/1 192.168.10.1/24",
        "R1 FastEthernet0/0 192.168.20.1/24 - server eth0 192.168.20.2/24",
    )
    with exposed_lab(tmp_path, "names", swapped) as (lab, file):
        before = session(lab, "show running-config")
        names = "{FastEthernet0/0: Fa0/1, FastEthernet0/1: Fa0/0}"
        text = file.read_text()
        assert text.count("        R1:\n") == 1
        file.write_text(text.replace("        R1:\n", f"        R1:\n          qoslab_interfaces: {names}\n"))
        command = ("run", str(FILE), "--lab", str(file), "--duration", "3s", "--arm", "policed")
        status, output, errors = run(clean, *command)
        assert status == status_of(newest_run(clean)), errors + output
        cell = next((clean / "runs/policing-vs-shaping").glob("2*/cells/policed/1"))
        # The requested and the parsed name are the experiment's, the printed name is the router's.
        assert "interface FastEthernet0/1\n service-policy output" in (cell / "config/R1.ios").read_text()
        running = (cell / "config/R1.running.ios").read_text()
        attached = running[running.index("interface FastEthernet0/0") : running.index("interface FastEthernet0/1")]
        assert " service-policy output Police" in attached
        (raw,) = (cell / "observations/R1").glob("after.*policy*.txt")
        assert raw.read_text().lstrip().startswith("FastEthernet0/0")
        assert list(json.loads(raw.with_suffix(".json").read_text())) == ["FastEthernet0/1"]
        values = json.loads((cell.parents[2] / "comparison.json").read_text())
        assert {row["metric"]: row["measured"] for row in values}["police.bc"] == 31250
        assert session(lab, "show running-config") == before


@pytest.mark.long
def test_run_leaves_an_existing_policy_of_the_router(tmp_path: Path, clean: Path) -> None:
    """Configure a port without a link of the experiment."""
    model = {"platform": "ios", "model": "2811", "generation": "classic"}
    made = topology(client="host", R1=model, server="host", R2=model)(
        "client eth0 192.168.10.2/24 - R1 FastEthernet0/0 192.168.10.1/24",
        "R1 FastEthernet0/1 192.168.20.1/24 - server eth0 192.168.20.2/24",
        "R1 Serial0/1/0 192.168.30.1/24 - R2 Serial0/1/0 192.168.30.2/24",
    )
    *links, serial = made.links
    other = made.model_copy(
        update={"links": (*links, serial.model_copy(update={"framing": "hdlc", "rate": Rate(2_000_000)}))}
    )
    with exposed_lab(tmp_path, "other", other) as (lab, file):
        running_configuration(lab, "R1", "policy-map Mine", "class class-default", "set dscp ef")
        running_configuration(lab, "R1", "interface Serial0/1/0", "service-policy output Mine")
        before = session(lab, "show running-config")
        words = ("--duration", "3s", "--arm", "policed", "--set", "R1.model=2811", "--set", "R1.generation=classic")
        status, output, errors = run(clean, "run", str(FILE), "--lab", str(file), *words)
        assert status == status_of(newest_run(clean)), errors + output
        cell = next((clean / "runs/policing-vs-shaping").glob("2*/cells/policed/1"))
        assert " service-policy output Mine" in (cell / "config/R1.running.ios").read_text()
        (printed,) = (cell / "observations/R1").glob("after.*policy*.json")
        assert set(json.loads(printed.read_text())) == {"Serial0/1/0", "FastEthernet0/1"}
        classes = pd.read_parquet(cell.parents[2] / "tables/classes.parquet")
        assert set(classes["interface"]) == {"FastEthernet0/1"}
        assert session(lab, "show running-config") == before


@pytest.mark.long
def test_run_works_in_a_project_with_custom_names(tmp_path: Path, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with the inventory of the documents, with another model, interface names and host names."""
    project = topology(client="host", R1={"platform": "ios", "model": "2811"}, server="host")(
        "client eth1 192.168.10.2/24 - R1 FastEthernet0/1 192.168.10.1/24",
        "R1 FastEthernet0/0 192.168.20.1/24 - server eth1 192.168.20.2/24",
    )
    yaml = YAML(typ="safe")
    with exposed_lab(tmp_path, "project", project) as (lab, file):
        running_configuration(lab, "R1", "interface Loopback0", "ip address 10.255.0.1 255.255.255.255")
        # Its addresses here, the permitted users, and the name of the virtual router.
        here, written = (yaml.load(text)["all"]["children"] for text in (file.read_text(), project_inventory()))
        kept = ("ansible_host", "ansible_port", "ansible_user", "ansible_become_password")
        ios, hosts = written["ios"]["hosts"], written["host"]
        monkeypatch.setenv("QOSLAB_PASSWORD", here["ios"]["hosts"]["R1"]["ansible_password"])
        ios["R1"] |= {key: here["ios"]["hosts"]["R1"][key] for key in kept}
        ios["R1"] |= {"qoslab_model": 2811, "qoslab_rollback": "none"}
        wanted = ("FastEthernet0/0", "FastEthernet0/1")
        ios["R1"]["qoslab_interfaces"] = dict(zip(ios["R1"]["qoslab_interfaces"], reversed(wanted), strict=True))
        for name in hosts["hosts"]:
            hosts["hosts"][name] = here["host"]["hosts"][name]
        hosts["vars"]["ansible_ssh_private_key_file"] = str(file.with_suffix(".key"))
        mine = tmp_path / "project.yml"
        with mine.open("w") as out:
            yaml.dump({"all": {"vars": {"qoslab_known_hosts": "here.known_hosts"}, "children": written}}, out)
        before = session(lab, "show running-config"), [state(lab, host) for host in ("client", "server")]
        assert "eth1" in before[1][0] and "Loopback0" in before[0]
        command = ("run", str(FILE), "--lab", str(mine), "--duration", "3s", "--arm", "policed")
        # As documented: its release queues differently from the experiment's router.
        status, output, errors = run(clean, *command, "--set", "R1.generation=hqf")
        assert status == status_of(newest_run(clean)), errors + output
        record = json.loads((newest_run(clean) / "cells/policed/1/cell.json").read_text())
        # The lateness of this machine as a host is not checked here.
        assert not reasons_except_lateness(record), errors
        assert record["captures"]["server"]["received"] > 50
        links = json.loads((newest_run(clean) / "manifest.json").read_text())["machine"]["lab"]["links"]
        assert {name: link["cabling"] for name, link in links.items()} == {"lan": "proven", "wan": "proven"}
        assert (session(lab, "show running-config"), [state(lab, host) for host in ("client", "server")]) == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param("25 ms", "", marks=pytest.mark.long),
        ("0 ms", "link wan: found a round trip of "),
    ],
)
def test_preflight_compares_the_delay_of_a_line(
    tmp_path: Path, collector: CollectorProcess, made: str, expected: str
) -> None:
    wanted, there = (make_plan(load_sweep(FILE, {"topology.links.wan.delay": each})) for each in ("25 ms", made))
    with exposed_lab(tmp_path, "delay", there.experiment.topology) as (_, file):
        if made == "0 ms":
            assert "qoslab_emulated_by" not in file.read_text()
            file.write_text(
                file.read_text().replace("all:\n", "all:\n  vars:\n    qoslab_emulated_by:\n      wan: line\n")
            )
        found = text(check_lab(file, wanted, collector))
        assert found.startswith(expected) and len(found.splitlines()) == bool(expected), found


VARIES = {"delay": "30 ms", "jitter": "{size: 20 ms}", "loss": "{model: random, probability: 10 %}"}


@pytest.mark.long
@pytest.mark.quiet
@pytest.mark.parametrize("link", ["wan", *long_cases("second")])
def test_preflight_compares_jitter_and_loss_of_a_line(tmp_path: Path, collector: CollectorProcess, link: str) -> None:
    """Compare jitter and loss of a line: at a host, which queries addresses, and between two routers, which ping."""
    source = FILE if link == "wan" else FILE.with_name("bucket-truth.yml")
    wanted = make_plan(load_sweep(source, {f"topology.links.{link}.{key}": value for key, value in VARIES.items()}))
    only_delayed = load_sweep(source, {f"topology.links.{link}.delay": VARIES["delay"]}).experiment
    for made in (wanted.experiment, only_delayed):
        with exposed_lab(tmp_path, link, made.topology) as (_, file):
            found = text(check_lab(file, wanted, collector)).splitlines()
        if made is wanted.experiment:
            assert found == []
        else:
            assert [re.sub(r"[\d.]+ ms, ", "… ms, ", each.partition(";")[0]) for each in found] == [
                f"link {link}: found 0 % of {440 if link == 'wan' else 121} requests lost at rest, expected 19 %",
                f"link {link}: found that {'half of ' if link == 'wan' else ''}the round trips at rest are within "
                "… ms, expected jitter of 20 ms (uniform)",
            ]


def test_run_is_refused_with_all_findings_before_any_change(here: tuple[Lab, Path], clean: Path) -> None:
    lab, file = here
    before = [state(lab, host) for host in ("client", "server")]
    running_configuration(lab, "R1", "interface Fa0/1", "duplex half", "interface Fa0/0", "shutdown")
    running_configuration(lab, "R1", "policy-map Police", "class class-default", "police cir 64000")
    try:
        running = session(lab, "show running-config")
        status, output, errors = run(
            clean, "run", str(FILE), "--lab", str(file), "--duration", "2s", "--arm", "policed"
        )
        assert status == 2, errors + output
        assert "R1: found FastEthernet0/0 shut down" in errors and "R1: found FastEthernet0/1 half duplex" in errors
        assert "R1: found that it has its own `policy-map Police`, with different content" in errors
        assert session(lab, "show running-config") == running
        status, output, errors = run(clean, "lab", "check", str(file), str(FILE))
        assert status == 2 and "R1: found FastEthernet0/1 half duplex" in errors, errors + output
        assert "link wan: proven, round trip " in output
    finally:
        running_configuration(lab, "R1", "interface Fa0/1", "no duplex", "interface Fa0/0", "no shutdown")
        running_configuration(lab, "R1", "no policy-map Police")
    assert [state(lab, host) for host in ("client", "server")] == before
    status, output, errors = run(clean, "lab", "check", str(file), str(FILE))
    assert status == 0 and "policing-vs-shaping can be run on " in errors, errors + output


def test_run_is_refused_if_host_keys_differ(here: tuple[Lab, Path], clean: Path) -> None:
    lab, file = here
    before = [state(lab, host) for host in ("client", "server")]
    known = file.with_suffix(".known_hosts").read_text().splitlines()
    others = [f"{line.split()[0]} {known[number - 1].split(' ', 1)[1]}" for number, line in enumerate(known)]
    (clean / "others").write_text("\n".join(others) + "\n")
    mine = clean / "mine.yml"
    mine.write_text(file.read_text().replace(str(file.with_suffix(".known_hosts")), str(clean / "others")))
    running = session(lab, "show running-config")
    status, output, errors = run(clean, "run", str(FILE), "--lab", str(mine), "--duration", "2s", "--arm", "policed")
    assert (status, output) == (2, ""), errors + output
    assert "R1: host key changed: 127.0.0.1 port " in errors
    for host in ("client", "server"):
        assert re.search(rf"{host} cannot be used: Host key for \[127.0.0.1\]:\d+ has changed", errors), errors
    assert session(lab, "show running-config") == running
    assert [state(lab, host) for host in ("client", "server")] == before
