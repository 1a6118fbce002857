"""Abandoned routers roll back by each method; `plan` lists the commands sent to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from commands import Command, run
from ruamel.yaml import YAML
from test_external import hosts, iperf3_runs, wait_until_clean
from test_iosd import HungUpError, session

from qoslab.schema import load_sweep
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from verdicts import newest_run, status_of
from waiting import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.slow]

EXPERIMENT = """\
name: three-ways-back
title: Three routers, of which each gets its configuration back in another way
topology:
  nodes:
    client: {platform: host, routes: [{prefix: 0.0.0.0/0, via: 192.168.10.1}]}
    R1: {platform: ios, model: "3725", routes: [{prefix: 192.168.20.0/24, via: 10.0.12.2}]}
    R2: {platform: ios, model: "2811", routes: [{prefix: 192.168.20.0/24, via: 10.0.23.3},
                                               {prefix: 192.168.10.0/24, via: 10.0.12.1}]}
    R3: {platform: ios, model: "3725", routes: [{prefix: 192.168.10.0/24, via: 10.0.23.2}]}
    server: {platform: host, routes: [{prefix: 0.0.0.0/0, via: 192.168.20.1}]}
  links:
    - {name: lan, rate: 100 Mb/s, ends: [{node: client, interface: eth0, address: 192.168.10.2/24},
                                         {node: R1, interface: FastEthernet0/0, address: 192.168.10.1/24}]}
    - {name: one, rate: 100 Mb/s, ends: [{node: R1, interface: FastEthernet0/1, address: 10.0.12.1/24},
                                         {node: R2, interface: FastEthernet0/0, address: 10.0.12.2/24}]}
    - {name: two, rate: 100 Mb/s, ends: [{node: R2, interface: FastEthernet0/1, address: 10.0.23.2/24},
                                         {node: R3, interface: FastEthernet0/0, address: 10.0.23.3/24}]}
    - {name: far, rate: 100 Mb/s, ends: [{node: R3, interface: FastEthernet0/1, address: 192.168.20.1/24},
                                         {node: server, interface: eth0, address: 192.168.20.2/24}]}
duration: 20 s
traffic:
  - {name: transfer, tool: iperf3, from: client, to: server}
arms:
  - name: policed
    title: Policed to 2 Mb/s, three times
    configure:
      R1: {template: police.ios.j2}
      R2: {template: police.ios.j2}
      R3: {template: police.ios.j2}
"""
TEMPLATE = """\
policy-map Police
 class class-default
  police cir 2000000
!
interface FastEthernet0/1
 service-policy output Police
"""
WAYS = {"R1": "archive", "R2": "eem", "R3": "reload"}
LOOKING = re.compile(r"show |dir |term(inal)? |enable$|<|exit$|ping ")
"""Commands of login and reading."""
COUNTS_S = 60.0
"""Minimum of the rollback timer."""
LATE_S = 60.0
"""Allowed delay of timers and of this test on a busy machine."""


@pytest.fixture
def rack(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lab, Path, Path]]:
    """Provide the lab, its inventory and the experiment: each router has another method, and none has saved its
    configuration.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    experiment, inventory = tmp_path / "three-ways-back.yml", tmp_path / "rack.yml"
    experiment.write_text(EXPERIMENT)
    (tmp_path / "police.ios.j2").write_text(TEMPLATE)
    with Lab.up(load_sweep(experiment, {}).experiment.topology, name=name) as lab:
        expose_lab(lab, inventory)
        yaml = YAML(typ="safe")
        listed: dict[str, Any] = yaml.load(inventory.read_text())
        ios = listed["all"]["children"]["ios"]
        del ios["vars"]["qoslab_rollback"]
        ios["vars"]["qoslab_rollback_margin"] = "10 s"
        for router, way in WAYS.items():
            ios["hosts"][router]["qoslab_rollback"] = way
        with inventory.open("w") as file:
            yaml.dump(listed, file)
        session(lab, "configure terminal", "archive", " path flash:kept", "end")
        yield lab, inventory, experiment


def router_states(lab: Lab) -> dict[str, list[str]]:
    """Return the configuration, startup configuration, files and timers of each router."""
    return {router: _router_lines(lab, router) for router in WAYS}


def _router_lines(lab: Lab, router: str) -> list[str]:
    waiting = ("show reload", "show archive config rollback timer")
    kept = ("show running-config", "show startup-config", "dir")
    text = session(lab, "terminal length 0", *kept, *waiting, router=router)
    return [re.sub(r"^ +\d+ .*\d{4} .* ", "file ", line) for line in text.splitlines() if line.strip()]


def test_each_abandoned_router_rolls_back(clean: Path, rack: tuple[Lab, Path, Path]) -> None:
    lab, inventory, experiment = rack
    before, left = router_states(lab), hosts(lab)
    # A restart would discard unsaved configuration: by then neither a router nor a host has been changed.
    status, _, errors = run(clean, "run", str(experiment), "--lab", str(inventory))
    assert status == 2, errors
    assert (
        "R3: found no rollback method that works (reload: it has unsaved changes that a reload would remove (write "
        "memory)), expected qoslab_rollback: reload; fix that, or run without a rollback timer: "
    ) in errors
    assert (router_states(lab), hosts(lab)) == (before, left)
    transcripts = list((clean / "runs").rglob("transcripts/**/*.txt"))
    sent = [line for file in transcripts for line in file.read_text().splitlines() if " > " in line]
    assert sent and not [line for line in sent if re.search(r"> (conf|copy|reload|event|delete)", line)], sent

    session(lab, "write memory", router="R3")
    before = router_states(lab)
    command = Command(clean, "run", str(experiment), "--lab", str(inventory))
    iperf3_runs(lab, command)
    command.process.kill()
    during = router_states(lab)
    assert all(any("service-policy output Police" in line for line in each) for each in during.values()), during
    # Its run lock keeps other runs away, while hosts are free.
    assert all(any("alias exec qoslab the run of" in line for line in each) for each in during.values()), during
    wait_until_clean(lab, left)
    command.end()
    # From now on nobody does anything.
    wait_until(
        lambda: not any(_is_policed(lab, router) for router in WAYS),
        "each router has rolled back",
        COUNTS_S + LATE_S,
        lambda: str([router for router in WAYS if _is_policed(lab, router)]),
        step_s=1.0,
    )
    after = router_states(lab)
    assert not [line for each in after.values() for line in each if "alias exec qoslab" in line], after
    # The configuration restored by the applet stays on the router's flash until somebody runs the rescue.
    kept = "file qoslab-before.cfg"
    assert any(kept in line for line in after["R2"]), after["R2"]
    status, _, errors = run(clean, "lab", "rescue", str(inventory))
    assert status == 0, errors
    assert "another user changed" not in errors, errors
    assert _stable_config(router_states(lab)) == _stable_config(before)
    assert hosts(lab) == left


def _is_policed(lab: Lab, router: str) -> bool:
    """Return whether the router still has the policy; False while it restarts."""
    try:
        return any("service-policy" in line for line in _router_lines(lab, router))
    except (HungUpError, asyncssh.Error, OSError):
        return True


def _stable_config(routers: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the output without parts that depend on the login: the prompt's bytes, and the free flash."""
    return {name: [line for line in lines if "bytes free" not in line] for name, lines in routers.items()}


@pytest.mark.long
def test_run_sends_the_commands_listed_by_plan(clean: Path, rack: tuple[Lab, Path, Path]) -> None:
    lab, inventory, experiment = rack
    session(lab, "write memory", router="R3")
    before = router_states(lab)
    arguments = (str(experiment), "--lab", str(inventory), "--duration", "3s")
    status, reported, errors = run(clean, "plan", *arguments, "--repetitions", "2")
    assert status == 0, errors
    status, _, errors = run(clean, "run", *arguments, "--repetitions", "2")
    assert status == status_of(newest_run(clean)), errors
    newest = (clean / "runs/three-ways-back/latest").resolve()
    for router in WAYS:
        promised = _listed_commands(reported, router)
        assert any("service-policy" in line for line in promised) and len(promised) > 20
        assert "\n".join(_sent_commands(newest, router)) == "\n".join(promised)
    assert _stable_config(router_states(lab)) == _stable_config(before)


def _listed_commands(message: str, router: str) -> list[str]:
    """Return the lines of `plan` for a router without show commands and headings."""
    block = message.split(f"sent to {router}, in order, without show commands\n")[1].split("\nsent to ")[0]
    lines = [line[4:].rstrip() for line in block.split("  show commands")[0].splitlines() if line.startswith("    ")]
    return [_without_times(line) for line in lines if not re.match(r"(archive|eem|reload): ", line)]


def _sent_commands(newest: Path, router: str) -> list[str]:
    """Return the lines sent to a router in all logins, in order, without logins and reading."""
    lines = []
    for file in newest.glob(f"transcripts/*/{router}.*.txt"):
        for number, line in enumerate(file.read_text().splitlines()):
            moment, who, *rest = line.split(" ", 2)
            if who == ">" and rest and rest[0].strip() and not LOOKING.match(rest[0]):
                lines.append((moment, file.name, number, _without_times(rest[0])))
    return [text for *_, text in sorted(lines)]


def _without_times(line: str) -> str:
    return re.sub(r"since .*", "since", line).strip()
