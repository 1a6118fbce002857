"""Labs of hosts: start, isolation and complete removal."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from labs import ROUTED, TWO_HOSTS, LabTraces, ping, topology

from levels import every_nth
from qoslab.errors import ExitStatus, ExperimentError, MachineError, UserError
from qoslab.model.experiment import TCP_PROFILES, TcpProfile, Topology
from qoslab.virtual_lab import Lab, LabError, netlink, supervision
from qoslab.virtual_lab.wiring import wire
from waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.lab

HERE = Path(__file__).parent
SET_CHILD_SUBREAPER = 36
"""Option of prctl(2)."""
TICK_US = 10_000
"""Longest tick of a kernel's clock (CONFIG_HZ=100)."""


def test_hosts_reach_only_each_other(lab: Lab) -> None:
    assert ping(lab, "client", "10.1.0.2") == 64
    interfaces = json.loads(lab.run("client", ["ip", "-j", "link"], check=True).stdout)
    assert [each["ifname"] for each in interfaces] == ["lo", "eth0"]
    assert interfaces[1]["mtu"] == 1500


def test_unread_output_does_not_block_a_lab(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "KILL_TIMEOUT_S", 1.0)
    # This process becomes the parent of orphans and never reaps them, like a container whose first process is no init.
    assert ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1) == 0
    try:
        with Lab.up(TWO_HOSTS, name=name) as lab:
            entered = subprocess.Popen(lab.argv("client", ["sleep", "1000"]))
            children = Path(f"/proc/{entered.pid}/task/{entered.pid}/children")
            inside = wait_until(lambda: children.read_text().split(), "the command has started")
            entered.kill()
            entered.wait()
        assert name not in [lab.name for lab in Lab.running_labs()]
        status = Path(f"/proc/{inside[0]}/status").read_text()
        assert "State:\tZ" in status, "somebody has collected it, which is not what is tried here"
        assert os.waitpid(int(inside[0]), 0)[0] == int(inside[0])
    finally:
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 0)


def test_labs_with_equal_addresses_are_isolated(lab: Lab, name: str) -> None:
    with Lab.up(TWO_HOSTS, name=name + "b") as other:
        server = other.popen(
            "server",
            ["python3", "-c", "import socket;s=socket.create_server(('10.1.0.2',7));print(flush=True);s.accept()"],
            stdout=subprocess.PIPE,
        )
        assert server.stdout is not None
        server.stdout.readline()
        connect = ["python3", "-c", "import socket;socket.create_connection(('10.1.0.2',7),2)"]
        refused = lab.run("client", connect)
        assert "ConnectionRefusedError" in refused.stderr
        assert other.run("client", connect).returncode == 0
        assert server.wait(PATIENCE_S) == 0


def test_machine_shortage_is_not_reported_as_a_bug(lab: Lab) -> None:
    limits = resource.prlimit(lab.pid, resource.RLIMIT_NOFILE)
    opened = {int(each.name) for each in Path(f"/proc/{lab.pid}/fd").iterdir()}
    free = min(set(range(len(opened) + 1)) - opened)
    resource.prlimit(lab.pid, resource.RLIMIT_NOFILE, (free, limits[1]))
    with pytest.raises(LabError, match="Too many open files") as raised:
        lab.apply_tcp_profile("client", TcpProfile())
    assert raised.value.exit_status == ExitStatus.USER_MISTAKE
    resource.prlimit(lab.pid, resource.RLIMIT_NOFILE, limits)
    lab.apply_tcp_profile("client", TcpProfile())


def test_lab_name_is_unique(lab: Lab, name: str) -> None:
    with pytest.raises(UserError, match="already"):
        Lab.up(TWO_HOSTS, name=name)
    assert lab.is_alive()


def test_lab_is_found_by_name(lab: Lab, name: str) -> None:
    found = Lab.find(name)
    assert found.pid == lab.pid
    assert found.topology == TWO_HOSTS
    assert ping(found, "server", "10.1.0.1") == 64
    with pytest.raises(UserError, match="no lab called"):
        Lab.find(name + "x")


def test_lab_starts_with_a_large_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        monkeypatch.setenv(f"BLOAT_{number}", "x" * 100_000)
    with Lab.up(ROUTED, name=name) as lab:
        assert lab.is_alive()
        done = lab.run("client", ["df", "--output=size", "-B1", "/run"])
        assert int(done.stdout.split()[-1]) == 256 * 2**20


def test_lab_down_leaves_nothing(name: str) -> None:
    lab = Lab.up(TWO_HOSTS, name=name)
    lab.popen("client", ["sleep", "1000"])
    traces = LabTraces(lab)
    lab.down()
    assert not [each for each in traces.found() if not each.startswith("namespace")]
    traces.wait_until_gone()
    assert name not in [each.name for each in Lab.running_labs()]


def test_sigkill_of_the_supervisor_removes_the_lab(name: str) -> None:
    lab = Lab.up(TWO_HOSTS, name=name)
    inside = lab.popen("client", ["sleep", "1000"])
    daemon = lab.popen("server", ["sh", "-c", "setsid sleep 1000 & echo $!"], stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    daemon.stdout.readline()
    traces = LabTraces(lab)
    os.kill(lab.pid, signal.SIGKILL)
    with pytest.raises(
        supervision.LabMachineError, match=rf"its supervisor \(process {lab.pid}\) was killed by SIGKILL"
    ):
        lab.failures()
    assert inside.wait(PATIENCE_S) == -signal.SIGKILL
    traces.wait_until_gone()
    assert not lab.is_alive()
    with pytest.raises(LabError):
        lab.failures()
    lab.down()


OWNER = """
import sys, threading, time
from labs import TWO_HOSTS
from qoslab.virtual_lab import Lab
def up():
    lab = Lab.up(TWO_HOSTS, name=sys.argv[1])
    lab.popen("client", ["sleep", "1000"])
    print(lab.pid, flush=True)
# The lab must outlive the thread that made it, and not outlive the process.
thread = threading.Thread(target=up)
thread.start()
thread.join()
time.sleep(1000)
"""


def test_sigkill_of_the_owner_removes_the_lab(name: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, name],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}"},
    )
    assert owner.stdout is not None
    assert owner.stdout.readline()
    lab = Lab.find(name)
    traces = LabTraces(lab)
    assert lab.is_alive()
    lab.close()
    owner.kill()
    owner.wait()
    traces.wait_until_gone()


def supervisors(name: str) -> list[str]:
    """Return the processes that were started for a lab of this name, in any state."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"import supervisor" in word for word in words) and name.encode() in words:
            found.append(process.name)
    return found


@pytest.mark.parametrize("owned", [True, False])
def test_sigkill_during_the_start_removes_the_lab(name: str, owned: bool) -> None:
    program = (
        "import sys\nfrom labs import *\nprint(flush=True)\n"
        f"Lab.up(TWO_HOSTS, name=sys.argv[1], owned={owned})\n"
        "print('up', flush=True)\ntime.sleep(1000)\n"
    )
    for milliseconds in (2, 10, 30, 60)[:: every_nth(2)]:
        owner = subprocess.Popen(
            [sys.executable, "-c", program, name],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}"},
        )
        assert owner.stdout is not None
        owner.stdout.readline()
        time.sleep(milliseconds / 1000)
        owner.kill()
        owner.wait()

        def removed() -> bool:
            # A detached lab has no owner, even if the process that started it was killed before printing.
            if not owned and any(lab.name == name for lab in Lab.running_labs()):
                Lab.find(name).down()
            return not supervisors(name)

        wait_until(removed, f"the lab killed after {milliseconds} ms is gone", report=lambda: str(supervisors(name)))


def test_detached_lab_outlives_its_starter(name: str) -> None:
    starter = "import sys;from labs import *;print(Lab.up(TWO_HOSTS, name=sys.argv[1], owned=False).pid)"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", starter, name],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}"},
    )
    lab = Lab.find(name)
    traces = LabTraces(lab)
    assert ping(lab, "client", "10.1.0.2") == 64
    lab.down()
    traces.wait_until_gone()


def test_signals_reach_the_command_and_not_nsenter_alone(lab: Lab) -> None:
    trap = "import signal,sys;signal.signal(15,lambda*_:sys.exit(7));print(flush=True);signal.pause()"
    process = lab.popen("client", ["python3", "-c", trap], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    assert process.wait(PATIENCE_S) == 7
    process.terminate()  # of an ended process: nothing
    other = lab.popen("client", ["sleep", "1000"])
    other.kill()
    assert other.wait(PATIENCE_S) == -signal.SIGKILL


def test_end_of_a_stopped_and_continued_command_is_detected(lab: Lab) -> None:
    process = lab.popen("client", ["sh", "-c", "read line; exit 3"], stdin=subprocess.PIPE, text=True)
    command = process.command_pid()
    assert command is not None
    os.kill(command, signal.SIGSTOP)
    _wait_for_state(process.pid, "T")  # nsenter stops together with its child
    assert process.poll() is None
    assert _state(command) == "T", "a stopped command stays stopped"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    os.kill(command, signal.SIGCONT)
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 3


@pytest.mark.parametrize("end", ["terminate", "kill"])
def test_stopped_command_can_be_ended(lab: Lab, end: str) -> None:
    process = lab.popen("client", ["sleep", "1000"])
    command = process.command_pid()
    assert command is not None
    os.kill(command, signal.SIGSTOP)
    _wait_for_state(process.pid, "T")
    getattr(process, end)()
    assert process.wait(PATIENCE_S) == -(signal.SIGTERM if end == "terminate" else signal.SIGKILL)


def test_kill_also_ends_child_processes_of_a_command(lab: Lab) -> None:
    process = lab.popen("client", ["sh", "-c", "setsid sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    # Nothing can be read while a descendant has it open, not even the end.
    assert select.select([process.stdout], [], [], PATIENCE_S)[0], "a descendant is left"
    assert process.stdout.read() == ""


def test_lab_with_a_stopped_command_ends(name: str) -> None:
    lab = Lab.up(TWO_HOSTS, name=name)
    traces = LabTraces(lab)
    process = lab.popen("client", ["sleep", "1000"])
    command = process.command_pid()
    assert command is not None
    os.kill(command, signal.SIGSTOP)
    _wait_for_state(process.pid, "T")
    lab.down()
    traces.wait_until_gone()
    assert process.wait(PATIENCE_S) == -signal.SIGKILL


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _wait_for_state(pid: int, state: str) -> None:
    wait_until(lambda: _state(pid) == state, f"process {pid} is {state}", report=lambda: _state(pid))


def test_commands_keep_their_directory_and_status(lab: Lab, tmp_path: Path) -> None:
    done = lab.run("client", ["sh", "-c", "pwd; echo word > file; exit 3"], cwd=tmp_path)
    assert (done.stdout, done.returncode) == (f"{tmp_path}\n", 3)
    assert (tmp_path / "file").read_text() == "word\n"
    with pytest.raises(UserError, match="no node R9"):
        lab.popen("R9", ["true"])


def test_interfaces_have_no_offloads(lab: Lab) -> None:
    features = lab.run("client", ["ethtool", "-k", "eth0"], check=True).stdout.splitlines()[1:]
    on = [line.strip() for line in features if ": on" in line and "[fixed]" not in line]
    assert on == ["highdma: on"]
    assert lab.describe()["offloads_on"] == {"client eth0": [], "server eth0": []}


@pytest.mark.parametrize("profile", ["modern", "legacy-2008"])
def test_connection_gets_the_tcp_profile(lab: Lab, profile: str) -> None:
    wanted = TCP_PROFILES[profile]
    for host in lab.nodes:
        lab.apply_tcp_profile(host, wanted)
    serve = "import socket;s=socket.create_server(('10.1.0.2',7));print(flush=True);c,_=s.accept();c.recv(1)"
    server = lab.popen("server", ["python3", "-c", serve], stdout=subprocess.PIPE)
    assert server.stdout is not None
    server.stdout.readline()
    # struct tcp_info (linux/tcp.h): options at 5, retransmission timeout in µs at 8, the round trip and how much it
    # varies at 68, congestion window at 80.
    look = (
        "import socket,struct;s=socket.create_connection(('10.1.0.2',7));i=s.getsockopt(6,socket.TCP_INFO,104);"
        "at=lambda n: struct.unpack_from('I',i,n)[0];"
        "print(s.getsockopt(6,13,16).split(b'\\0')[0].decode(),i[5],*map(at,(8,68,72,80)))"
    )
    found = lab.run("client", ["python3", "-c", look], check=True).stdout.split()
    (algorithm, options), (rto, round_trip, varies, window) = found[:2], map(int, found[2:])
    assert algorithm == wanted.congestion_control
    assert bool(int(options) & 1) == wanted.timestamps
    assert bool(int(options) & 2) == wanted.sack
    assert window == wanted.initcwnd
    # The connection's round trip, which is longer on a busy machine; in ticks of the kernel's clock.
    expected = round_trip + max(4 * varies, int(wanted.rto_min) // 1000)
    assert expected <= rto <= expected + TICK_US
    server.wait(PATIENCE_S)


def test_flooded_host_sends_no_port_unreachable(name: str) -> None:
    described = TWO_HOSTS.model_dump(mode="json", exclude_none=True)
    for number, end in enumerate(described["links"][0]["ends"], 1):
        end["ipv6_address"] = f"fd00:1::{number}/64"
    asks = (
        "import socket, time\nfor address in ('10.1.0.2', 'fd00:1::2'):\n for port in range(1000, 1010):\n"
        "  s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)\n"
        "  s.connect((address, port))\n  s.send(b'x')\n  time.sleep(0.05)\n"
        "  print(address, 'closed' if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) else 'silent')"
    )
    notes = []
    with Lab.up(Topology.model_validate_json(json.dumps(described)), name=name) as lab:
        for answers in (False, True):
            lab.apply_tcp_profile("server", TcpProfile(), answers=answers)
            notes.append(set(lab.run("client", ["python3", "-c", asks], check=True).stdout.splitlines()))
    assert notes[0] == {"10.1.0.2 silent", "fd00:1::2 silent"}
    assert {"10.1.0.2 closed", "fd00:1::2 closed"} <= notes[1]


def test_unknown_congestion_control_is_refused(lab: Lab) -> None:
    with pytest.raises(MachineError, match="nonesuch") as caught:
        lab.apply_tcp_profile("client", TcpProfile(congestion_control="nonesuch"))
    assert "modprobe tcp_nonesuch" in caught.value.hint


def test_refusal_of_the_kernel_is_reported(lab: Lab) -> None:
    spaces = lab._supervisor.namespaces(["client"])
    try:
        again = next(each for each in wire(TWO_HOSTS).interfaces() if each.namespace == "client")
        with pytest.raises(MachineError, match=r"client: address 10.1.0.1/24 on eth0: the kernel answered EEXIST"):
            spaces["client"].transact(
                [netlink.link_up(again), netlink.address_message(again, again.addresses[0]), netlink.link_up(again)]
            )
        # The answers to the rest of the batch must not remain for the next one.
        spaces["client"].transact([netlink.link_up(again)])
    finally:
        spaces["client"].close()


RECEIVE_STAMPED = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS: when the kernel had the packet, not when we were woken
s.bind(("10.1.0.2", 9))
print(flush=True)
for _ in range(120):
    seconds, nanoseconds = struct.unpack("qq", s.recvmsg(2000, 64)[1][0][2])
    print(seconds * 10**9 + nanoseconds, flush=True)
"""


def test_token_bucket_keeps_the_line_rate(name: str) -> None:
    """Check the token bucket: no interval has more than the burst and the line rate allow, framing counted; nor is the
    line much slower.
    """
    hosts = topology(a="host", b="host")("a eth0 10.1.0.1/24 - b eth0 10.1.0.2/24", rate="10 Mb/s")
    bucket = next(each.shaper for each in wire(hosts).interfaces() if each.shaper is not None)
    with Lab.up(hosts, name=name) as lab:
        receiver = lab.popen("b", ["python3", "-c", RECEIVE_STAMPED], stdout=subprocess.PIPE, text=True)
        assert receiver.stdout is not None
        receiver.stdout.readline()
        send = "import socket;s=socket.socket(2,2)\nfor _ in range(120): s.sendto(bytes(1472),('10.1.0.2',9))"
        lab.run("a", ["python3", "-c", send], check=True)
        stamps = [int(line) for line in receiver.stdout]
    assert len(stamps) == 120
    for first in range(120):
        for last in range(first + 1, 120):
            allowed = bucket.burst_bytes + (stamps[last] - stamps[first]) * 10e6 / 8e9
            # Tokens of one millisecond: the time stamp is taken a little after the bucket releases the packet.
            assert (last - first + 1) * 1538 <= allowed + 1250
    assert stamps[-1] - stamps[0] < 120 * 1538 * 8 / 10e6 * 1e9 + 500_000_000


def test_topologies_beyond_the_virtual_lab_are_refused(name: str) -> None:
    twice = TWO_HOSTS.model_dump(mode="json")
    twice["links"].append({**twice["links"][0], "name": "again"})
    with pytest.raises(ExperimentError, match="is used by two links"):
        Lab.up(type(TWO_HOSTS).model_validate_json(json.dumps(twice)), name=name)
    with pytest.raises(UserError, match="is not a valid lab name"):
        Lab.up(TWO_HOSTS, name="a/b")
    assert name not in [each.name for each in Lab.running_labs()]


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_ordinary_user_can_run_a_lab(name: str) -> None:
    """Run the same as an unprivileged user, with an interpreter that such a user may execute."""
    paths = [str(Path(__file__).parent), *sys.path]
    drop = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
    program = (
        "import sys,os;from labs import *\n"
        "with Lab.up(TWO_HOSTS, name=sys.argv[1]) as lab:\n"
        "    traces = LabTraces(lab)\n"
        "    print(os.geteuid(), ping(lab, 'client', '10.1.0.2'), Lab.find(sys.argv[1]).is_alive())\n"
        "traces.wait_until_gone()\n"
    )
    for python in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            # This process starts with setpriv's privileges; the second one shows that the user may run the interpreter.
            probe = "import pydantic,pytest,subprocess,sys; subprocess.run([sys.executable,'-c',''],check=True)"
            subprocess.run([*drop, python, "-c", probe], check=True, env=environment, cwd="/", capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        done = subprocess.run(
            [*drop, python, "-c", program, name], text=True, capture_output=True, env=environment, cwd="/"
        )
        assert done.stdout == "12345 64 True\n", done.stderr
        return
    pytest.skip("no interpreter that an ordinary user can run with these packages")


NO_USER_NAMESPACES = ("unshare", "--user", "--map-root-user", "sh", "-c")
"""Shell whose descendants may not create user namespaces, once it has written the limit of its namespace."""


def test_root_needs_no_user_namespace(name: str) -> None:
    program = (
        "import sys;from labs import *\n"
        "with Lab.up(TWO_HOSTS, name=sys.argv[1]) as lab:\n"
        "    print(lab.describe()['user_namespace'], ping(lab, 'client', '10.1.0.2'))\n"
    )
    done = subprocess.run(
        [
            *NO_USER_NAMESPACES,
            'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
            *("sh", sys.executable, "-c", program, name),
        ],
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}"},
    )
    assert done.stdout == "False 64\n", done.stderr


def test_kernel_that_forbids_labs_gives_an_error_with_a_remedy(name: str) -> None:
    program = (
        "import sys;from labs import *;from qoslab.errors import MachineError\n"
        "try:\n    Lab.up(TWO_HOSTS, name=sys.argv[1])\n"
        "except MachineError as error:\n    print(error.message, error.hint, sep='\\n')\n"
    )
    done = subprocess.run(
        [
            *NO_USER_NAMESPACES,
            'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "$@"',
            *("sh", sys.executable, "-c", program, name),
        ],
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}"},
    )
    assert done.stdout.startswith("this machine does not let this user start a lab: "), done.stderr
    # The shell is root in its own namespace, so the cause can only be a restriction of root.
    assert "A container has to allow namespaces" in done.stdout


def test_parallel_labs_start_and_release_everything(name: str) -> None:
    def one(number: int) -> int | None:
        with Lab.up(TWO_HOSTS, name=f"{name}-{number}") as lab:
            return ping(lab, "client", "10.1.0.2")

    before = len(list(Path("/proc/self/fd").iterdir()))
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, range(6))) == [64] * 6
    assert len(list(Path("/proc/self/fd").iterdir())) == before
