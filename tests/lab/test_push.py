"""Ansible and Unicon against virtual routers: push, read back, restore, and faults."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from labs import topology

from levels import long_cases
from misbehaving import MisbehavingRelay
from qoslab.cli import main
from qoslab.errors import DeviceError, RunInvalid, UserError
from qoslab.ios.compile import compile_device
from qoslab.ios.parse import apply_config, parse_config
from qoslab.model.experiment import Experiment
from qoslab.model.units import Duration
from qoslab.platforms import MODELS
from qoslab.platforms.startup import startup_config
from qoslab.results import Cell
from qoslab.run.cell.journal import CellJournal
from qoslab.run.cell.measure import CellRun, CommandLines
from qoslab.run.cell.probes import CellProbes, Setting
from qoslab.run.devices.ansible import leftovers
from qoslab.run.devices.ansible.playbooks import AnsibleSession, RouterError
from qoslab.run.devices.ansible_inventory import IosAccess, write_inventory
from qoslab.run.devices.collector import CollectorProcess
from qoslab.run.devices.pushed_routers import PushedRouters
from qoslab.run.devices.state import RestoreState
from qoslab.run.faults import TransientFault
from qoslab.run.task import CellTask
from qoslab.run.workers.virtual.access import lab_router_access
from qoslab.run.workers.virtual.nodes import VirtualLab
from qoslab.schema import CellIdentity
from qoslab.verification.requested_policy import policy_differences
from qoslab.virtual_lab import Lab
from rollback_lines import undo_lines
from verdicts import reasons_except_lateness
from waiting import PATIENCE_S, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("push")]

TOPOLOGY = topology(client="host", R1={"platform": "ios", "model": "3725"}, R2="engine", server="host")(
    "client eth0 10.1.0.2/24 - R1 FastEthernet0/0 10.1.0.1/24",
    "R1 FastEthernet0/1 10.2.0.1/24 - R2 FastEthernet0/0 10.2.0.2/24",
    "R2 FastEthernet0/1 10.3.0.1/24 - server eth0 10.3.0.2/24",
)
HARDWARE = MODELS["3725"].hardware()
TEMPLATE = """\
policy-map {name}
 class class-default
  {action}
!
interface FastEthernet0/1
 service-policy output {name}
"""
NO_TIME = Duration(0)
POLICE = TEMPLATE.format(name="Police", action="police cir 1000000")
SHAPE = TEMPLATE.format(name="Shape", action="shape average 1000000")
COMMAND = "show policy-map interface"


class PushRig:
    """Lab with a session of Ansible, and the steps of a run around it."""

    def __init__(self, lab: Lab, session: AnsibleSession, before: Path, folder: Path) -> None:
        self.lab, self.session, self.before, self.folder = lab, session, before, folder

    def text_before(self) -> str:
        return (self.before / "R1.before.ios").read_text()

    def running(self) -> str:
        answers = self.session.execute(["verify"], intended=self.before).answers("R1")
        return answers["show running-config"]

    def intend(self, name: str, text: str) -> Path:
        """Write a folder with both routers' configuration."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        (folder / "R1.ios").write_text(text)
        (folder / "R2.engine.json").write_text(json.dumps(self.compiled(text)))
        return folder

    def compiled(self, text: str) -> dict[str, object]:
        """Return the data plane's configuration of an engine router with this text."""
        device = parse_config(self.text_before(), HARDWARE)
        apply_config(device, text)
        return compile_device(device) | {"router": "R2"}

    def undo(self, name: str) -> Path:
        """Write a folder with the lines that remove R1's additional configuration."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        lines = undo_lines(self.text_before(), self.running(), HARDWARE)
        (folder / "R1.restore.ios").write_text("".join(f"{line}\n" for line in lines))
        return folder

    def restored(self, name: str) -> None:
        self.session.execute(["restore"], restore=self.undo(name))


def significant_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and "Current configuration" not in line]


@pytest.fixture(scope="module")
def routers() -> Iterator[Lab]:
    with Lab.up(TOPOLOGY, name=f"test-push-{os.getpid()}") as lab:
        yield lab


@pytest.fixture(scope="module")
def collector(routers: Lab) -> Iterator[CollectorProcess]:
    with CollectorProcess() as collector:
        collector.connect(lab_router_access(routers), known_hosts=routers.known_hosts(), wait=False)
        yield collector


@pytest.fixture(scope="module")
def rig(routers: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PushRig]:
    folder = tmp_path_factory.mktemp("push")
    inventory = folder / "inventory.json"
    with AnsibleSession(inventory, before=folder / "before") as session:
        # as in a run: Ansible starts before there is an inventory
        session.start()
        write_inventory(inventory, lab_router_access(routers))
        session.execute(["prepare"])
        yield PushRig(routers, session, folder / "before", folder)


def test_run_pushes_and_removes_the_policy(rig: PushRig, collector: CollectorProcess, tmp_path: Path) -> None:
    intended = rig.intend("police", POLICE)
    outcome = rig.session.execute(["apply", "verify"], intended=intended, commands=[COMMAND], keep=tmp_path)
    assert outcome.changed_routers == {"R1", "R2"}
    assert (tmp_path / "apply-verify" / "rc").read_text() == "0\n"
    assert "changed: [R1]" in (tmp_path / "apply-verify" / "stdout").read_text()

    # the router's output, as Ansible and as Unicon read it
    shown = collector.parse(COMMAND, outcome.answers("R1")[COMMAND])
    observed = collector.observe("R1", COMMAND)
    assert shown.parsed == observed.parsed
    assert shown.parsed is not None
    device = parse_config(outcome.answers("R1")["show running-config"], HARDWARE)
    assert policy_differences(shown.parsed, compile_device(device)) == []
    # the engine router was given the same policy
    engine = outcome.engine("R2")
    assert engine is not None
    assert engine["policy_maps"] == compile_device(device)["policy_maps"]

    # a second push changes nothing
    again = rig.session.execute(["apply", "verify"], intended=intended)
    assert again.changed_routers == frozenset()

    rig.restored("unpolice")
    assert significant_lines(rig.running()) == significant_lines(rig.text_before())
    after = rig.session.execute(["verify"], intended=rig.before).engine("R2")
    assert after == json.loads((rig.before / "R2.before.json").read_text())


@pytest.mark.long
def test_configurations_of_arms_are_pushed_in_a_fixed_order(rig: PushRig, collector: CollectorProcess) -> None:
    rig.session.execute(["apply"], intended=rig.intend("first", POLICE))
    shape = rig.intend("second", SHAPE)
    outcome = rig.session.execute(
        ["restore", "apply", "verify"], intended=shape, restore=rig.undo("first-undo"), commands=[COMMAND]
    )
    parsed = collector.observe("R1", COMMAND).parsed
    assert parsed is not None
    policies = parsed["FastEthernet0/1"]["service_policy"]["output"]["policy_name"]
    assert set(policies) == {"Shape"}
    assert policies["Shape"]["class_map"]["class-default"]["traffic_shaping"]["byte_limit"] == 6250
    assert "Police" not in outcome.answers("R1")["show running-config"]
    rig.restored("second-undo")


def test_refused_line_is_shown_with_the_message_of_the_router(rig: PushRig, tmp_path: Path) -> None:
    text = "policy-map Police\n class class-default\n  police cir 1000000\n  police bogus 1\n"
    folder = tmp_path / "intended"
    folder.mkdir()
    (folder / "R1.ios").write_text(text)
    with pytest.raises(RouterError) as caught:
        rig.session.execute(["apply", "verify"], intended=folder, keep=tmp_path / "kept")
    assert "R1 refused the configuration (apply):\npolice bogus 1\n       ^\n% Invalid input" in caught.value.message
    assert str(tmp_path / "kept") in caught.value.hint
    assert (tmp_path / "kept" / "apply-verify" / "rc").read_text() == "2\n"
    # nothing is verified after the failure; half of the lines remain effective until they are removed
    assert {task.intent for task in caught.value.outcome.tasks if task.host == "R1"} == {"apply"}
    assert "policy-map Police" in rig.running()
    rig.restored("refused-undo")
    assert significant_lines(rig.running()) == significant_lines(rig.text_before())


@pytest.mark.long
def test_refused_policy_is_shown_with_the_message_of_the_router(rig: PushRig, tmp_path: Path) -> None:
    # Ansible does not know this message by default; the playbooks' group_vars define it.
    folder = tmp_path / "intended"
    folder.mkdir()
    text = "class-map match-all Voice\n match dscp ef\npolicy-map Fair\n class Voice\n  fair-queue\n"
    (folder / "R1.ios").write_text(text)
    with pytest.raises(RouterError) as caught:
        rig.session.execute(["apply"], intended=folder)
    assert caught.value.message == (
        "R1 refused the configuration (apply):\nfair-queue\nfair-queue can only be configured in class class-default"
    )
    rig.restored("fair-undo")
    assert significant_lines(rig.running()) == significant_lines(rig.text_before())


def routers_of_a_run(rig: PushRig, message: list[str]) -> PushedRouters:
    """Return the routers of a second run."""
    login = {"user": "lab", "password": "unused", "enable": "unused"}
    base = partial(startup_config, TOPOLOGY, login=login)
    return PushedRouters(TOPOLOGY, rig.session, RestoreState(rig.before), base, message.append)


@pytest.mark.long
def test_routers_are_restored_after_the_connection_process_dies(rig: PushRig, tmp_path: Path) -> None:
    routers = routers_of_a_run(rig, [])
    routers.configure(
        Cell(tmp_path / "cell", CellIdentity("a", (), 1)), {"R1": POLICE, "R2": POLICE}, [COMMAND], traffic=NO_TIME
    )
    scratch = rig.session._scratch
    assert scratch is not None
    holders = [pid for pid, line in processes_with(str(scratch).encode()) if leftovers.CONNECTION_PROCESS in line]
    assert holders
    for pid in holders:
        os.kill(pid, signal.SIGKILL)
    routers.restore(None, tmp_path / "restore")
    assert significant_lines(rig.running()) == significant_lines(rig.text_before())


def test_changes_by_others_stay_and_are_reported(rig: PushRig, collector: CollectorProcess, tmp_path: Path) -> None:
    notes: list[str] = []
    routers = routers_of_a_run(rig, notes)
    was = rig.running()
    routers.configure(Cell(tmp_path / "a", CellIdentity("a", (), 1)), {"R1": POLICE, "R2": POLICE}, [], traffic=NO_TIME)
    shown = "show running-config"
    assert routers.command_lines["R1"].foreign_changes(collector.observe("R1", shown).raw) == []
    collector.configure("R1", ["interface FastEthernet0/0", "description to Bob", "ip host bob 10.9.9.9"])
    assert routers.command_lines["R1"].foreign_changes(collector.observe("R1", shown).raw) == [
        "interface FastEthernet0/0: `description to Bob` is new",
        "`ip host bob 10.9.9.9` is new",
    ]
    routers.configure(Cell(tmp_path / "b", CellIdentity("b", (), 1)), {"R1": SHAPE, "R2": SHAPE}, [], traffic=NO_TIME)
    assert "Police" not in rig.running()
    routers.restore(tmp_path / "lines", tmp_path / "kept")
    now = rig.running()
    assert "Shape" not in now
    assert sorted(set(significant_lines(now)) ^ set(significant_lines(was))) == [
        " description to Bob",
        "ip host bob 10.9.9.9",
    ]
    assert notes == [
        "R1: another user changed its configuration during the run; left unchanged:\n"
        "  interface FastEthernet0/0: `description to Bob` is new\n"
        "  `ip host bob 10.9.9.9` is new"
    ], "once"
    collector.configure("R1", ["interface FastEthernet0/0", "no description", "no ip host bob"])
    assert significant_lines(rig.running()) == significant_lines(was)


@pytest.mark.long
def test_configuration_of_the_router_is_not_overwritten(
    rig: PushRig, collector: CollectorProcess, tmp_path: Path
) -> None:
    was = rig.running()
    own = TEMPLATE.format(name="Police", action="police cir 64000")
    collector.configure("R1", own.replace("!\n", "").splitlines())
    before = rig.running()
    with pytest.raises(UserError) as caught:
        routers_of_a_run(rig, []).configure(
            Cell(tmp_path / "a", CellIdentity("a", (), 1)), {"R1": POLICE}, [], traffic=NO_TIME
        )
    assert caught.value.message == (
        "R1 was not changed, because the experiment would overwrite part of its configuration:\n"
        "  it has its own `policy-map Police`, with different content"
    )
    with pytest.raises(UserError, match="`service-policy output Police` is already active"):
        routers_of_a_run(rig, []).configure(
            Cell(tmp_path / "b", CellIdentity("b", (), 1)), {"R1": SHAPE}, [], traffic=NO_TIME
        )
    assert rig.running() == before
    collector.configure("R1", ["interface FastEthernet0/1", "no service-policy output Police", "no policy-map Police"])
    rig.session.execute(["prepare"])
    assert significant_lines(rig.running()) == significant_lines(was)


@pytest.mark.long
def test_running_operation_cannot_be_modified_and_continues(
    rig: PushRig, collector: CollectorProcess, tmp_path: Path
) -> None:
    def running() -> str:
        return collector.observe("R1", "show running-config").raw

    clean = running()
    own = ["ip sla 7", "icmp-echo 10.1.0.2", "ip sla schedule 7 life forever start-time now"]
    collector.configure("R1", own)
    before = running()
    (tmp_path / "R1.ios").write_text("ip sla 6\n icmp-echo 10.1.0.2\nip sla 7\n frequency 9\n")
    with pytest.raises(RouterError) as caught:
        rig.session.execute(["apply"], intended=tmp_path)
    assert caught.value.message == (
        "R1 refused the configuration (apply):\nip sla 7\nEntry already running and cannot be modified"
    )
    assert undo_lines(before, running(), HARDWARE) == ["no ip sla 6"]
    collector.configure("R1", ["no ip sla 6", "no ip sla 7"])
    assert significant_lines(running()) == significant_lines(clean)


def test_difference_from_the_pushed_configuration_is_reported(rig: PushRig, tmp_path: Path) -> None:
    (tmp_path / "R1.ios").write_text("interface FastEthernet0/1\n service-policy output Missing\n")
    with pytest.raises(RouterError) as caught:
        rig.session.execute(["verify"], intended=tmp_path)
    assert caught.value.message.startswith(
        "R1: the running configuration differs from the pushed one:\n  interface FastEthernet0/1: "
        "configured `service-policy output Missing`, but no such line is active"
    )


PASTED = """class-m match-any Voice
match ip dscp 46
policy-m Police
class Voice
police 2000000 10000 conform-action transmit exceed-action drop
int fa0/1
service-p out Police
"""


@pytest.mark.long
def test_pasted_configuration_is_accepted_and_verified(rig: PushRig) -> None:
    intended = rig.intend("pasted", PASTED)
    assert "R1" in rig.session.execute(["apply", "verify"], intended=intended).changed_routers
    assert rig.session.execute(["apply", "verify"], intended=intended).changed_routers == frozenset()
    # One value in the running configuration differs.
    (rig.folder / "other").mkdir()
    (rig.folder / "other" / "R1.ios").write_text(PASTED.replace("10000", "20000"))
    with pytest.raises(RouterError) as caught:
        rig.session.execute(["verify"], intended=rig.folder / "other")
    assert caught.value.message == (
        "R1: the running configuration differs from the pushed one:\n"
        "  policy-map Police, class Voice: configured `police 2000000 20000`, but `police 2000000 10000` is active"
    )
    rig.restored("unpasted")


@pytest.mark.long
def test_router_that_is_not_restored_is_reported(rig: PushRig, tmp_path: Path) -> None:
    rig.session.execute(["apply"], intended=rig.intend("stays", POLICE))
    with pytest.raises(RouterError, match=r"(?s)not back .*`policy-map Police` is new"):
        rig.session.execute(["restore"], restore=tmp_path)
    rig.restored("stays-undo")


@pytest.mark.long
def test_interrupt_stops_ansible_and_the_routers_can_be_restored(rig: PushRig) -> None:
    # If the tests run in the background of a shell, an interrupt is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    intended = rig.intend("interrupted", POLICE)
    scratch = str(rig.session._scratch).encode()
    assert processes_with(scratch)
    threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            rig.session.execute(["apply", "verify"], intended=intended)
    assert not processes_with(scratch)
    rig.restored("interrupted-undo")
    assert significant_lines(rig.running()) == significant_lines(rig.text_before())


@pytest.mark.long
@pytest.mark.quiet
def test_running_tasks_end_at_once(routers: Lab, tmp_path: Path) -> None:
    """Cancel tasks: a router does not answer, and another process detects that it is gone.

    Ansible's connections have a second to close; ansible-runner would wait 3 to 5 s for the end of the task.
    """
    access = lab_router_access(routers)["R1"]
    assert isinstance(access, IosAccess)
    raised: list[float] = []
    with MisbehavingRelay(access.port) as silent:
        silent.stall()

        def check() -> None:
            if silent.connections:
                raised.append(time.monotonic())
                raise TransientFault("the router is gone")

        write_inventory(tmp_path / "inventory.json", {"R1": replace(access, port=silent.port)})
        session = AnsibleSession(tmp_path / "inventory.json", before=tmp_path / "before", check=check)
        with session, pytest.raises(TransientFault, match="the router is gone"):
            session.execute(["prepare"])
        assert time.monotonic() - raised[0] < 2.5


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"password": "x"}, "R1 refused the login"),
        ({"port": 1}, "R1 cannot be reached"),
        # The message depends on whether Ansible reads the output before or after the second password prompt.
        ({"enable": "x"}, "R1 (refused the enable secret|refused the login|did not answer in time)"),
    ],
)
def test_unreachable_router_is_reported(routers: Lab, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    access = lab_router_access(routers)["R1"]
    assert isinstance(access, IosAccess)
    wrong = replace(access, **changes)
    write_inventory(tmp_path / "inventory.json", {"R1": wrong})
    with (
        AnsibleSession(tmp_path / "inventory.json", before=tmp_path / "before") as session,
        pytest.raises(RouterError, match=message),
    ):
        session.execute(["prepare"])
    assert not (tmp_path / "before" / "R1.before.ios").exists()
    with CollectorProcess() as collector, pytest.raises(DeviceError, match=message):
        collector.connect({"R1": wrong}, known_hosts=routers.known_hosts())


def test_observation_reconnects_after_a_disconnect(routers: Lab, collector: CollectorProcess) -> None:
    assert collector.observe("R1", "show clock").parsed
    # the ssh clients of the collector, and no others
    ended = [pid for pid, line in processes_with(str(routers.known_hosts()).encode()) if line.startswith(b"ssh\0")]
    assert ended
    for pid in ended:
        os.kill(pid, signal.SIGTERM)
    assert collector.observe("R1", "show clock").parsed


def test_refused_command_is_recorded_with_its_reason(collector: CollectorProcess) -> None:
    observed = collector.observe("R1", "show tides")
    assert "% Invalid input" in observed.raw
    assert observed.data == {"unparsed": "the router refused the command: % Invalid input detected at '^' marker."}


def probing_experiment(*described: dict[str, str | int]) -> Experiment:
    """Return an experiment with these probes and a flow."""
    times = {"frequency": "1 s", "timeout": "500 ms"}
    probes = [{"name": f"{probe['from']}-probe", **times, **probe} for probe in described]
    flow = {
        "name": "flow",
        "tool": "flood",
        "from": "client",
        "to": "server",
        "protocol": "udp",
        "rate": "100 kb/s",
        "size": "100 B",
    }
    text = {
        "name": "x",
        "title": "x",
        "topology": TOPOLOGY.model_dump(mode="json", by_alias=True),
        "duration": "2 s",
        "probes": probes,
        "traffic": [flow],
        "arms": [{"name": "a"}],
    }
    return Experiment.model_validate_json(json.dumps(text))


class CommandLineOnly(VirtualLab):
    """Lab whose routers are reached by their command lines alone, like real ones."""

    data_planes = ()


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    """Provide an empty folder."""
    return Cell(tmp_path, CellIdentity("a", (), 1))


@pytest.fixture
def probes(routers: Lab, collector: CollectorProcess, cell: Cell) -> Iterator[Callable[..., CellProbes]]:
    """Yield a function that makes probes; R1 is reached by its command line alone, like a real router."""
    made: list[CellProbes] = []

    def make(*described: dict[str, str | int]) -> CellProbes:
        setting = Setting(
            CommandLineOnly(routers),
            probing_experiment(*described),
            cell,
            observe=lambda *words: collector.observe(*words).raw,
            enter=collector.configure,
        )
        made.append(CellProbes(setting))
        return made[-1]

    yield make
    for each in made:
        each.close()
    collector.configure("R1", ["no ip sla 1"])


@pytest.mark.quiet
@pytest.mark.parametrize("kind", ["icmp-jitter", *long_cases("icmp-echo")])
def test_router_with_only_a_command_line_is_measured_through_it(
    kind: str, routers: Lab, collector: CollectorProcess, cell: Cell
) -> None:
    experiment = probing_experiment({"type": kind, "from": "R1", "to": "client"})
    collector.configure("R1", ["ip sla 1", f" {kind} 10.1.0.2", " timeout 500", " frequency 1"])
    before = collector.observe("R1", "show running-config").raw
    journal = CellJournal(CellTask(cell.identity, experiment, {}, key=""), cell, lambda *_: None)
    commands = CommandLines(collector.observe, collector.configure, collector.show, collector.parse)
    run = CellRun(CommandLineOnly(routers), journal, commands, threading.Event())
    try:
        run.measure(nullcontext())
        after = collector.observe("R1", "show running-config").raw
    finally:
        collector.configure("R1", ["no ip sla 1"])
    # The lateness of this machine is not checked here.
    assert not reasons_except_lateness(journal.write().model_dump())
    assert significant_lines(after) == significant_lines(before)
    # Its data plane was not read.
    assert sorted(file.name for file in (cell.path / "probes").iterdir()) == ["R1-probe.json", "R1-probe.txt"]
    assert cell.files().devices_with_counters() == [] and not journal.record().health
    values = json.loads((cell.path / "probes/R1-probe.json").read_text())
    assert values["rtt_count"] == (20 if kind == "icmp-jitter" else 2)
    assert (values["jitter_sd_ms"] is None) == (kind == "icmp-echo")


def test_missing_responders_are_reported_with_a_hint(
    probes: Callable[..., CellProbes], collector: CollectorProcess
) -> None:
    running = probes(
        {"type": "udp-jitter", "from": "R1", "to": "client", "port": 5000},
        {"type": "udp-echo", "from": "client", "to": "R1", "port": 5000},
    )
    collector.configure("R1", ["ip sla 1", " udp-jitter 10.1.0.2 5000", " timeout 500", " frequency 1"])
    # Not prepared, so no responder runs, and R1 got no configuration for one.
    running.start(time.monotonic())
    with pytest.raises(RunInvalid) as caught:
        running.finish()
    reported = 'probe "{}-probe": no packet was answered (return code: No connection): no responder on {} answers'
    assert reported.format("R1", "client") in caught.value.message
    assert reported.format("client", "R1") in caught.value.message


def test_probe_refused_by_the_router_is_reported_with_its_message(
    probes: Callable[..., CellProbes], cell: Cell
) -> None:
    running = probes({"type": "icmp-echo", "from": "R1", "to": "client"})
    running.start(time.monotonic())
    with pytest.raises(RunInvalid, match=r'R1 refused "ip sla schedule 1 .*": %Entry not configured'):
        running.finish()
    cell.write(cell.configuration("R1.before.ios"), "ip sla 1\n icmp-echo 10.9.9.9\n")
    with pytest.raises(RunInvalid, match="already had an operation 1; give the probe another number"):
        running.prepare()


@pytest.mark.long
def test_responder_without_its_port_is_reported(probes: Callable[..., CellProbes], routers: Lab) -> None:
    """Occupy the control port of the responder with another process."""
    occupy = "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 1967))"
    taken = routers.popen(
        "server", ["python3", "-c", f"{occupy}; print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE
    )
    try:
        assert taken.stdout is not None
        taken.stdout.readline()
        running = probes({"type": "udp-echo", "from": "client", "to": "server", "port": 5000})
        with pytest.raises(
            RunInvalid, match="the responder on server cannot listen on UDP port 1967: another program uses it"
        ):
            running.prepare()
    finally:
        taken.kill()
        taken.wait(PATIENCE_S)


def test_pyats_testbed_connects_to_the_routers(routers: Lab, tmp_path: Path) -> None:
    path = tmp_path / "testbed.yml"
    assert main(["testbed", "--lab", routers.name, "--output", str(path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    program = (
        "import sys; from qoslab.genie.show_parser import register; register();"
        "from genie.testbed import load; d = load(sys.argv[1]).devices;"
        "[d[n].connect(log_stdout=False, logfile='/dev/null') for n in ('R1', 'client')];"
        "print(d['R1'].parse('show version')['version']['hostname'], list(d['R1'].learn('qos').info));"
        "print(d['client'].execute('ip -o link show dev eth0').split()[1].partition('@')[0]);"
        # A process whose parents end first is reaped by nobody.
        "[d[n].disconnect() for n in ('R1', 'client')]"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    output = done.stdout.splitlines()[-2:]
    assert output[0].startswith("R1 [") and "'class_map'" in output[0] and output[1] == "eth0", (
        done.stdout + done.stderr
    )


@pytest.mark.long
def test_session_ends_when_its_owner_is_killed(routers: Lab, tmp_path: Path) -> None:
    write_inventory(tmp_path / "inventory.json", lab_router_access(routers))
    program = (
        "import os, signal, sys; from pathlib import Path; "
        "from qoslab.run.devices.ansible.playbooks import AnsibleSession;"
        "s = AnsibleSession(Path(sys.argv[1]), before=Path(sys.argv[2])); s.execute(['prepare']);"
        "print(s._scratch, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "inventory.json"), str(tmp_path / "before")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    scratch = done.stdout.strip()
    wait_until(lambda: not processes_with(scratch.encode()), "all processes of the session have ended")
    wait_until(lambda: not Path(scratch).exists(), "the session's folder is gone")


def processes_with(mark: bytes) -> list[tuple[int, bytes]]:
    """Return the processes that have `mark` in their command line or environment, except this one."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if mark in line or mark in environment:
                found.append((int(process.name), line))
    return found
