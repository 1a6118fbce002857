"""Agent of a host, on this machine: the parts that need no other network."""

from __future__ import annotations

import ast
import json
import os
import platform
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from older_python import oldest_python
from process_alive import is_alive
from qoslab.errors import DeviceError, MachineError
from qoslab.model.inventory import HostSettings
from qoslab.run.devices.ansible_inventory import HostAccess
from qoslab.run.real import agent
from qoslab.run.real.agent import host_facts, kernel, nic, settings
from qoslab.run.real.agent.lateness import LatenessWatch
from qoslab.run.real.channel import AgentChannel, HostLostFault
from qoslab.run.real.nodes import ExternalHost, ExternalProcess, HostPlace
from qoslab.schema import load_sweep
from waiting import wait_until

EXPERIMENT = load_sweep(Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml", {}).experiment
FOLDER = Path(agent.__file__).parent


@pytest.fixture
def host_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostAccess:
    """Provide this machine as a host: `ssh` runs the command here."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "exec $last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return HostAccess("here", python=sys.executable)


@pytest.fixture(params=["of this Python", "of the oldest"])
def host_access_any_python(host_access: HostAccess, request: pytest.FixtureRequest) -> HostAccess:
    """Provide the host of the lab, also with its oldest supported Python."""
    return host_access if request.param == "of this Python" else replace(host_access, python=oldest_python())


def folders(folder: Path) -> list[str]:
    return [each.name for each in folder.glob("qoslab-agent-*")]


def test_output_arrives_in_order_and_completely(host_access_any_python: HostAccess, tmp_path: Path) -> None:
    channel = AgentChannel("client", host_access_any_python, "a test")
    text = "import sys\nfor n in range(60000): print(n)\nprint('wrong', file=sys.stderr)\nsys.exit(3)"
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("xb", buffering=0) as stdout, err.open("xb", buffering=0) as stderr:
        process = ExternalProcess(channel, *channel.start([sys.executable, "-c", text], stdout, stderr))
        assert process.wait(60) == 3
    assert out.read_text() == "".join(f"{n}\n" for n in range(60000))
    assert err.read_text() == "wrong\n"
    assert channel.close() == []
    assert folders(tmp_path) == []


def test_agent_handles_signals_files_and_qoslab_programs(host_access_any_python: HostAccess, tmp_path: Path) -> None:
    channel = AgentChannel("client", host_access_any_python, "a test")
    try:
        err = (tmp_path / "err").open("xb", buffering=0)
        process = ExternalProcess(channel, *channel.start(["sleep", "60"], None, err))
        assert process.poll() is None
        process.signal(signal.SIGINT)
        assert process.wait(10) == -signal.SIGINT
        # The sent program is run from memory.
        program = shutil.which("echo")
        assert program is not None
        channel.ask("put", Path(program).read_bytes(), name="ours")
        out = tmp_path / "out"
        ours = channel.start(["ours", "hello"], out.open("xb", buffering=0), (tmp_path / "err2").open("xb"))
        assert ExternalProcess(channel, *ours).wait(10) == 0
        assert out.read_text() == "hello\n"
        data = os.urandom(3_000_000)
        (Path(channel.facts["folder"]) / "capture").write_bytes(data)
        with (tmp_path / "fetched").open("xb") as file:
            channel.fetch("capture", file, 60)
        assert (tmp_path / "fetched").read_bytes() == data
        assert channel.read("/proc/version", "/proc/uptime").startswith(b"Linux")
        assert abs(channel.ask("clock")["wall_ns"] - time.time_ns()) < 10**10
        with pytest.raises(MachineError, match="client: found no program iperf4 in /"):
            channel.start(["iperf4"], None, (tmp_path / "err3").open("xb"))
        assert channel.ask("versions", names=["sh4"])["versions"] == {"sh4": None}
        reply = channel.ask("facts", programs=["sh4"], far=["127.0.0.1"])["facts"]
        assert reply["missing"] == ["sh4"] and "lo" in reply["cards"] and reply["routes"]["127.0.0.1"][0] == "lo"
    finally:
        channel.close()


def test_program_starts_on_time_during_other_operations(host_access_any_python: HostAccess, tmp_path: Path) -> None:
    channel = AgentChannel("client", host_access_any_python, "a test")

    def start(name: str, argv: list[str], at_ns: int) -> ExternalProcess:
        return ExternalProcess(channel, *channel.start(argv, None, (tmp_path / name).open("xb", buffering=0), at_ns))

    try:
        now = time.monotonic_ns()
        late = start("late", ["true"], now - 10**9)
        second, first = (start(f"in {tenths}", ["true"], now + tenths * 10**8) for tenths in (8, 5))
        never = start("never", ["true"], now + 60 * 10**9)
        assert late.wait(10) == 0
        while time.monotonic_ns() < now + 4 * 10**8:
            channel.ask("clock")
        # The others are not checked: a busy machine may stop this process for longer than their times.
        assert (never.began_ns(), never.poll()) == (None, None)
        never.signal(signal.SIGTERM)
        assert (never.wait(10), never.began_ns()) == (-signal.SIGTERM, None)
        assert first.wait(10) == second.wait(10) == 0
        begun = [each.began_ns() for each in (late, first, second)]
        assert None not in begun and begun == sorted(begun)  # type: ignore[type-var]
        plan = (now, now + 5 * 10**8, now + 8 * 10**8)
        # Never early; a lab test on an idle machine checks the delay.
        assert all(came >= planned for came, planned in zip(begun, plan, strict=True))  # type: ignore[operator]
        (tmp_path / "no program").write_text("#!/nowhere\n")
        (tmp_path / "no program").chmod(0o755)
        failed = start("failed", [str(tmp_path / "no program")], now)
        assert (failed.wait(10), failed.began_ns()) == (126, None)
        assert "no program could not be started: [Errno 2]" in (tmp_path / "failed").read_text()
        # A request for a later instant delays no other one.
        start("also never", ["true"], now + 60 * 10**9)
    finally:
        assert channel.close() == []


def test_stalled_host_reports_the_duration(host_access_any_python: HostAccess, tmp_path: Path) -> None:
    channel = AgentChannel("client", host_access_any_python, "a test")
    try:
        number, output = channel.start(["sleep", "60"], None, (tmp_path / "err").open("xb"))
        channel.ask("watched")
        os.kill(channel._process.pid, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(channel._process.pid, signal.SIGCONT)
        found = channel.ask("watched")["stalls"]
        assert found["watched_ns"] > 500_000_000
        assert found["late"] >= 1 and found["latest_ns"] > 500_000_000 and found["behind_ns"] >= found["latest_ns"]
        # The kernel reports the time it waited for a processor, which is read every 0.2 s.
        wait_until(lambda: "sleep" in channel.ask("watched")["stalls"]["waited_ns"], "the wait is reported", step_s=0.3)
        ExternalProcess(channel, number, output).end()
    finally:
        channel.close()


def test_stall_during_the_program_check_is_reported() -> None:
    looked = threading.Event()

    def programs() -> list[tuple[str, int]]:
        time.sleep(0 if looked.is_set() else 0.3)
        looked.set()
        return []

    watch = LatenessWatch(programs)
    assert looked.wait(10)
    # By then it sleeps again.
    time.sleep(0.1)
    found = watch.take_findings()
    assert found["latest_ns"] > 250_000_000 and found["behind_ns"] >= found["latest_ns"]


def test_programs_end_when_the_connection_is_lost(host_access_any_python: HostAccess, tmp_path: Path) -> None:
    channel = AgentChannel("client", host_access_any_python, "a test")
    mark = tmp_path / "pid"
    text = f"trap '' INT TERM HUP; echo $$ >{mark}; while :; do sleep 0.1; done"
    _, output = channel.start(["sh", "-c", text], None, (tmp_path / "err").open("xb"))
    wait_until(lambda: mark.exists() and mark.read_text(), "the program has started")
    channel._process.kill()
    wait_until(lambda: not is_alive(int(mark.read_text())), "the program has ended")
    wait_until(lambda: folders(tmp_path) == [] and channel.lost, "the agent and its folder are gone")
    assert "ssh was killed by SIGKILL" in channel.lost and output.status is None
    with pytest.raises(HostLostFault, match="client is out of reach: ssh was killed"):
        channel.ask("clock")


def test_host_is_released_during_any_operation(host_access_any_python: HostAccess, tmp_path: Path) -> None:
    channel = AgentChannel("client", host_access_any_python, "a test")
    mark = tmp_path / "pid"
    text = f"trap '' INT TERM HUP; echo $$ >{mark}; while :; do sleep 0.1; done"
    channel.start(["sh", "-c", text], None, (tmp_path / "err").open("xb"))
    wait_until(lambda: mark.exists() and mark.read_text(), "the program has started")
    unanswered = channel._send("beat")
    channel.give_up("no router can be reached any more")
    with pytest.raises(HostLostFault, match="client is out of reach: no router can be reached any more"):
        unanswered.result(0.0)
    wait_until(lambda: not is_alive(int(mark.read_text())), "the program has ended")
    wait_until(lambda: folders(tmp_path) == [], "the folder of the agent is gone")
    assert channel.close() == []
    assert channel.lost == "no router can be reached any more"


def test_agent_ends_without_messages_of_the_controller(host_access: HostAccess, tmp_path: Path) -> None:
    text = agent.agent_source("a test")
    boot = f"import sys; exec(compile(sys.stdin.buffer.read({len(text)}), 'agent', 'exec'))"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", boot], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.flush()
        assert process.wait(20) == 0
    assert folders(tmp_path) == []


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        ("echo 'u@h: Permission denied (publickey).' >&2; exit 255", "Permission denied", "ssh-copy-id"),
        ("echo 'Host key verification failed.' >&2; exit 255", "verification failed", "ssh-keyscan"),
        (
            "printf 'Host key for h has changed and you\\nHost key verification failed.\\n' >&2; exit 255",
            "Host key for h has changed and you Host key verification failed.",
            "ssh-keygen -R h",
        ),
        ("echo 'sh: 1: python3: not found' >&2; exit 127", "not found", "3.8 or later"),
        ("echo 'sudo: a password is required' >&2; exit 1", "a password is required", "no password"),
        ("echo 'Welcome to this machine!'; exit 0", "is not the agent's output", "by hand"),
        ("exit 9", "ssh ended with status 9", "by hand"),
    ],
)
def test_host_without_an_agent_gives_the_reason(
    host_access: HostAccess, tmp_path: Path, script: str, message: str, hint: str
) -> None:
    (tmp_path / "bin/ssh").write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(DeviceError) as caught:
        AgentChannel("client", host_access, "a test")
    assert caught.value.message.startswith("client cannot be used: ") and message in caught.value.message
    assert hint in caught.value.hint


def test_journals_are_read_up_to_a_truncated_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "RESTORE_S", 0.1)
    path = tmp_path / "journal"
    journal = settings.Journal(str(path), "alice")
    journal.add({"run": ["true"]})
    with path.open("a") as file:
        file.write('{"run": ["fal')
    with pytest.raises(kernel.AgentRefusedError, match="locked by alice"):
        settings.Journal(str(path), "bob")
    journal.close()
    again = settings.Journal(str(path), "bob")
    assert again.failed == []
    assert json.loads(path.read_text())["who"] == "bob"
    again.close()


def test_settings_are_restored_in_reverse_order(tmp_path: Path) -> None:
    path = tmp_path / "order"
    entries = [{"run": ["sh", "-c", f"echo {number} >>{shlex.quote(str(path))}"]} for number in (1, 2, 3)]
    failed = settings.undo_entries([*entries, {"run": ["false"]}])
    assert path.read_text() == "3\n2\n1\n"
    assert failed == ["false: ended with status 1"]


def test_lines_of_ip_route_are_parsed_and_printed_equally() -> None:
    line = "192.168.10.0/24 dev eth0 proto kernel scope link src 192.168.10.2 linkdown initcwnd 2 rto_min lock 0.3s "
    assert kernel.route_metrics(line) == {"initcwnd": "2", "rto_min": "300"}
    assert kernel.route_metrics("default via 10.0.0.1 rto_min lock 200ms congctl reno") == {
        "rto_min": "200",
        "congctl": "reno",
    }
    assert " ".join(kernel.recreate_arguments(line)) == (
        "192.168.10.0/24 dev eth0 proto kernel scope link src 192.168.10.2 initcwnd 2 rto_min 0.3s"
    )
    assert kernel.recreate_arguments("default via 10.0.0.1 mtu lock 1400") == [
        "default",
        "via",
        "10.0.0.1",
        "mtu",
        "lock",
        "1400",
    ]


@pytest.mark.parametrize(
    ("has", "message"),
    [
        ({}, ""),
        ({"ip -4": "default via 192.0.2.1 proto dhcp"}, "eth1 has this machine's default route: the interface"),
        ({"ip -6": "default via fe80::1 proto ra"}, "eth1 has this machine's default route of IPv6: the interface"),
        ({"master": "br0"}, r"eth1 belongs to br0 and would have to leave it .* \(ip link set eth1 nomaster\)"),
        ({"ip -j": "192.0.2.7"}, "this SSH connection uses eth1"),
        ({"ip -j": "192.0.2.77"}, ""),
        ({"tc -j": "htb"}, "eth1 has the queueing discipline htb"),
    ],
)
def test_management_nic_is_not_moved(has: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*words: str) -> str:
        found = has.get(" ".join(words[:2]), "")
        address = {"local": found, "prefixlen": 24, "scope": "global"}
        link = {"addr_info": [address] if found else [], **{key: has[key] for key in ("master",) if key in has}}
        shown = {"ip -j": [link], "tc -j": [{"kind": found or "noqueue"}]}
        return json.dumps(shown[" ".join(words[:2])]) if "-j" in words else found

    monkeypatch.setattr(nic, "call", call)
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.7 22")
    if not message:
        nic.check_movable("eth1")
        return
    with pytest.raises(kernel.AgentRefusedError, match=message):
        nic.check_movable("eth1")


def test_program_that_cannot_run_on_a_host_is_reported_with_the_reason(host_access_any_python: HostAccess) -> None:
    channel = AgentChannel("client", host_access_any_python, "a test")
    topology = EXPERIMENT.topology
    host = ExternalHost(channel, HostPlace(topology, "client", HostSettings()))
    try:
        assert host.run_obstacle("flood") == host.run_obstacle("flood") == ""
        missing = "version GLIBC_2.34 not found"
        for text, why in (
            (f'#!/bin/sh\necho "flood: $1: {missing}" >&2\nexit 1\n', f"flood: --version: {missing}"),
            ("#!/bin/sh\nexit 3\n", "ended with status 3"),
            ("#!/no/loader\n", "No such file or directory"),
            ("\x7fELF", "Exec format error"),
        ):
            channel.ask("put", text.encode(), name="flood")
            assert host.run_obstacle("flood") == why
    finally:
        channel.close()
    foreign = {"kernel": "Linux pi 6.1 #1 SMP aarch64"}
    other = ExternalHost(SimpleNamespace(facts=foreign), HostPlace(topology, "client", HostSettings()))  # type: ignore[arg-type]
    assert other.run_obstacle("flood") == f"client is aarch64, but flood is built for {platform.machine()}"


@pytest.mark.parametrize(
    ("route", "sysctls", "found"),
    [
        ("default via 192.0.2.1 dev eth0 proto dhcp metric 100", {}, []),
        ("10.0.0.0/8 via 192.0.2.1 dev eth0 initcwnd 10 rto_min lock 200ms congctl cubic", {"ecn": "2"}, []),
        ("10.9.0.0/16 \n\tnexthop via 192.0.2.1 dev eth0 weight 1 ", {"ecn": "0"}, []),
        ("default via 192.0.2.1", {"ecn": "1"}, [["net.ipv4.tcp_ecn", "1", "0"]]),
        ("default via 192.0.2.1 initcwnd 4", {}, [["initcwnd to 10.9.0.2", "4", "10"]]),
        ("default via 192.0.2.1", {"congestion_control": "bbr"}, [["congctl to 10.9.0.2", "bbr", "cubic"]]),
        ("default via 192.0.2.1", {"rto_min_us": "5000"}, [["rto_min to 10.9.0.2", "5", "200"]]),
        ("", {}, [["route to 10.9.0.2", "", ""]]),
    ],
)
def test_active_settings_are_compared(
    route: str, sysctls: dict[str, str], found: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {
        f"net.ipv4.tcp_{key}": value for key, value in {"ecn": "2", "congestion_control": "cubic", **sysctls}.items()
    }

    def call(*words: str) -> str:
        assert words == ("ip", "-4", "route", "get", "fibmatch", "10.9.0.2")
        if not route:
            raise kernel.AgentRefusedError("RTNETLINK answers: Network is unreachable")
        return route + "\n"

    for module in (kernel, settings):
        monkeypatch.setattr(module, "read_sysctl", there.get)
    monkeypatch.setattr(kernel, "call", call)
    metrics = {"initcwnd": "10", "rto_min": "200", "congctl": "cubic"}
    assert settings.settings_differences({"net.ipv4.tcp_ecn": "0"}, {"10.9.0.2": metrics}) == found


def test_behind_sudo_the_management_address_is_that_of_the_login(
    host_access_any_python: HostAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits for the command, and gives it a separate environment.
    sudo = tmp_path / "bin/sudo"
    sudo.write_text('#!/bin/sh\nshift\nenv -i PATH="$PATH" TMPDIR="$TMPDIR" "$@"\nexit $?\n')
    sudo.chmod(0o755)
    for become in ((), ("sudo", "-n")):
        monkeypatch.setenv("SSH_CONNECTION", "127.0.0.1 50000 127.0.0.2 22")
        channel = AgentChannel("client", replace(host_access_any_python, become=become), "a test")
        try:
            reply = channel.ask("facts", programs=[], far=[])["facts"]["management"]
        finally:
            channel.close()
        assert reply == {"address": "127.0.0.2", "device": "lo"}
    monkeypatch.setenv("SSH_CONNECTION", "fe80::1%eth7 50000 fe80::2%eth7 22")
    assert host_facts.management_interface() == {"address": "fe80::2%eth7", "device": "eth7"}


@pytest.mark.parametrize("ipv6", [False, True])
def test_kernel_without_ipv6_gets_no_ipv6_settings(ipv6: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ipv4 = {"net.ipv4.icmp_ratelimit": "1000"}
    there = {**ipv4, "net.ipv6.conf.all.disable_ipv6": "0"} if ipv6 else ipv4
    monkeypatch.setattr(settings, "read_sysctl", there.get)
    here = settings.HostSettings(None, "alice")  # type: ignore[arg-type]
    wanted = {**ipv4, "net.ipv6.icmp.ratelimit": "1000"}
    if ipv6:
        with pytest.raises(kernel.AgentRefusedError, match=r"ipv6\.icmp\.ratelimit is unknown to the kernel, not 1000"):
            here.apply(wanted, [], {})
    else:
        assert here.apply(wanted, [], {}) == ipv4


PINGED = """\
PING 192.168.10.1 (192.168.10.1) from 192.168.10.2 eth0: 56(84) bytes of data.
64 bytes from 192.168.10.1: icmp_seq=1 ttl=255 time=0.412 ms
64 bytes from 192.168.10.1: icmp_seq=3 ttl=255 time=12.0 ms

--- 192.168.10.1 ping statistics ---
3 packets transmitted, 2 received, 33.3333% packet loss, time 402ms
rtt min/avg/max/mdev = 0.412/6.206/12.000/5.794 ms
"""
UNHEARD = """\
PING 192.168.10.1 (192.168.10.1) from 192.168.10.2 eth0: 56(84) bytes of data.

--- 192.168.10.1 ping statistics ---
3 packets transmitted, 0 received, 100% packet loss, time 2041ms
"""
"""Output of the ping of iputils without answers."""
ENTRY = '[{"dst": "192.168.10.1", "lladdr": "02:00:00:00:00:10", "state": ["REACHABLE"]}]'
CARDS = """\
[{"ifname": "eth0", "flags": ["UP", "LOWER_UP"], "address": "02:00:00:00:00:01",
  "addr_info": [{"local": "192.168.10.2", "prefixlen": 24}]}]
"""


@pytest.mark.parametrize(
    ("printed", "status", "entry", "macs", "took_ms", "why"),
    [
        (PINGED, 0, ENTRY, {"192.168.10.1": ["02:00:00:00:00:10"]}, [0.412, 12.0], ""),
        # A host that answers ARP and drops echo requests is reachable.
        (UNHEARD, 1, ENTRY, {"192.168.10.1": ["02:00:00:00:00:10"]}, [], ""),
        (UNHEARD, 1, '[{"dst": "192.168.10.1", "state": ["FAILED"]}]', {}, [], "no answer to ping"),
        ("ping: connect: Network is unreachable\n", 2, "", {}, [], "no answer to ping"),
    ],
)
def test_user_without_raw_sockets_pings_link_local_addresses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    printed: str,
    status: int,
    entry: str,
    macs: dict[str, list[str]],
    took_ms: list[float],
    why: str,
) -> None:
    def program(name: str, script: str) -> None:
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{shlex.quote(str(tmp_path))}/asked\n{script}\n')
        (tmp_path / name).chmod(0o755)

    def refused(*_: object) -> None:
        raise PermissionError

    (tmp_path / "printed").write_text(printed)
    (tmp_path / "entry").write_text(entry)
    (tmp_path / "cards").write_text(CARDS)
    program("ping", f"cat {shlex.quote(str(tmp_path))}/printed; exit {status}")
    which = 'case "$*" in *neigh*) file=entry;; *) file=cards;; esac'
    program("ip", f"{which}; cat {shlex.quote(str(tmp_path))}/$file")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(host_facts, "ethernet_facts", lambda _: {"driver": "", "mbps": None, "duplex": None})

    def cable(sender: str) -> dict[str, Any]:
        return host_facts.probe_cable("eth0", sender, "192.168.10.1", ["192.168.20.1"], 3, 400, 0.3)

    assert cable("192.168.10.2") == {
        "macs": macs,
        "asked": 3,
        "took_ms": took_ms,
        "burst": 0,
        "answered": 0,
        "why": why,
    }
    (asked,) = (each for each in (tmp_path / "asked").read_text().splitlines() if each.startswith("ping"))
    assert asked == "ping -n -c 3 -i 0.2 -W 1 -t 1 -I eth0 192.168.10.1"
    # Without the experiment's address, which is not set yet, an answer would prove nothing about the cable.
    assert cable("192.168.10.9")["why"] == "detecting the neighbour on a cable requires root or CAP_NET_RAW"


def test_missing_capture_rights_are_reported_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumpcap = tmp_path / "dumpcap"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    # In the words of the program, which prints a list of interfaces nonetheless.
    refusal = 'dumpcap: The capabilities of the capture device "any" could not be obtained (Operation not permitted).'
    refused = f"echo '{refusal}' >&2; echo 'Please check your permissions.' >&2; exit 2"
    for script, text in ((refused, refusal), ("exit 0", ""), ("exit 3", "ended with status 3")):
        dumpcap.write_text(f'#!/bin/sh\ntest "$*" = "-L -i any" || exit 0\n{script}\n')
        dumpcap.chmod(0o755)
        assert host_facts.collect_facts(["dumpcap"], [], str(tmp_path))["no_capture"] == text
        assert host_facts.collect_facts([], [], str(tmp_path))["no_capture"] == ""


def test_agent_needs_only_the_standard_library_of_python_3_8() -> None:
    sent = [f"{agent.__name__}.{name}" for name in agent.MODULES]
    for name in agent.MODULES:
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        tree = ast.parse(text, feature_version=(3, 8))
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [node.module]
            for each in names:
                assert each in sent or each.split(".")[0] in sys.stdlib_module_names, f"{name}: {each}"
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(["__init__", *agent.MODULES])
