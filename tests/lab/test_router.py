"""`qos-router` between a client and a server: forwarding, counters, event time, hostile frames, control socket."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import dataplane
import pytest
from dataplane import (
    BINARY,
    CLIENT,
    SERVER,
    DataPlaneLab,
    configuration,
    conforming_bytes,
    ping,
    policy,
    send_udp,
    spawn_sink,
    spawn_udp,
    stop_process,
    with_sink,
)

from waiting import PATIENCE_S, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("router")]

IN, OUT = "FastEthernet0/0", "FastEthernet0/1"
#: Payload that makes an Ethernet frame of 1014 bytes, which is what the router counts.
SIZE, COUNTED = 972, 1014
#: Frame sizes at the boundaries of ring slots, and minimum and maximum frames.
HOSTILE_SIZES = (14, 15, 20, 33, 34, 41, 42, 60, 61, 127, 128, 1513, 1514)


@pytest.fixture(scope="module")
def shared_lab() -> Iterator[DataPlaneLab]:
    with with_sink() as lab:
        yield lab


@pytest.fixture
def lab(shared_lab: DataPlaneLab) -> DataPlaneLab:
    """Provide the shared lab with default configuration, cleared counters and resolved addresses."""
    shared_lab.ask("configure", config=configuration())
    assert len(ping(shared_lab, "client", SERVER, 2)) == 2
    shared_lab.ask("clear")
    return shared_lab


def interfaces(lab: DataPlaneLab) -> dict:  # type: ignore[type-arg]
    return lab.ask("counters")["interfaces"]


def test_packets_pass_in_both_directions(lab: DataPlaneLab) -> None:
    assert len(ping(lab, "client", SERVER, 10)) == 10
    assert len(ping(lab, "server", CLIENT, 10)) == 10
    assert len(ping(lab, "client", "10.0.10.1", 3)) == 3  # the router itself


@pytest.mark.quiet
def test_sent_packets_are_counted(lab: DataPlaneLab) -> None:
    send_udp(lab, SIZE, 500, 5e6)
    counters = interfaces(lab)
    for port, direction in ((IN, "input"), (OUT, "output")):
        values = counters[port][direction]
        assert (values["packets"], values["bytes"], values["drops"]) == (500, 500 * COUNTED, 0)
    health = lab.ask("health")
    assert (health["received"], health["transmitted"]) == (500, 500)
    assert (health["lost_input"], health["malformed"], health["unsent"]) == (0, 0, 0)
    assert health["lateness_ns"]["count"] == 500


@pytest.mark.quiet
@pytest.mark.long
def test_every_offered_packet_is_sent_dropped_or_queued(lab: DataPlaneLab) -> None:
    police = {"cir": {"bps": 1_000_000}}
    lab.ask("configure", config=configuration({"P": policy(police=police)}, Fa0_1={"service_policy_output": "P"}))
    send_udp(lab, SIZE, 500, 5e6)
    output = interfaces(lab)[OUT]
    [values] = output["policy_output"]["classes"]
    dropped, conformed = values["police"]["exceeded"], values["police"]["conformed"]
    assert values["packets"] == 500
    assert dropped["packets"] + conformed["packets"] == 500
    assert output["output"]["packets"] == conformed["packets"]
    assert output["output"]["drops"] == values["drops"]["police"]["packets"] == dropped["packets"] > 0


@pytest.mark.quiet
@pytest.mark.sample(2)
@pytest.mark.parametrize("direction", ["input", "output"])
def test_flood_is_policed_to_its_rate(lab: DataPlaneLab, direction: str) -> None:
    bc = 3000
    name = {"input": "Fa0_0", "output": "Fa0_1"}[direction]
    maps = {"P": policy(police={"cir": {"bps": 1_000_000}, "bc": {"bytes": bc}})}
    lab.ask("configure", config=configuration(maps, **{name: {f"service_policy_{direction}": "P"}}))
    times = send_udp(lab, SIZE, 3000, 10e6)
    attached = interfaces(lab)[IN if direction == "input" else OUT][f"policy_{direction}"]
    passed = attached["classes"][0]["police"]["conformed"]["bytes"]
    assert passed == pytest.approx(conforming_bytes(times, COUNTED, 1e6, bc), rel=0.01)
    # The upper bound of a token bucket, independent of the sender; it is reached unless the sender was delayed.
    assert passed <= 1e6 / 8 * (times[-1] - times[0]) + bc + COUNTED


@pytest.mark.quiet
def test_stopped_daemon_makes_the_same_decisions(lab: DataPlaneLab) -> None:
    # The bucket holds 16 ms: a policer with its own clock would lose two thirds of the tokens of each stall.
    bc = 2000
    maps = {"P": policy(police={"cir": {"bps": 1_000_000}, "bc": {"bytes": bc}})}
    for side, port, direction in (("Fa0_0", IN, "input"), ("Fa0_1", OUT, "output")):
        lab.ask("configure", config=configuration(maps, **{side: {f"service_policy_{direction}": "P"}}))
        lab.ask("clear")
        sending = spawn_udp(lab, SIZE, 1500, 6e6)
        for _ in range(10):
            time.sleep(0.1)
            with stop_process(lab):
                time.sleep(0.05)
        times = [float(word) for word in sending.communicate(timeout=60)[0].split()]
        passed = interfaces(lab)[port][f"policy_{direction}"]["classes"][0]["police"]["conformed"]["bytes"]
        assert passed == pytest.approx(conforming_bytes(times, COUNTED, 1e6, bc), rel=0.01), direction
        health = lab.ask("health")
        assert health["lost_input"] == 0
        assert health["late_over_budget"] > 0
        assert health["lateness_ns"]["max"] > 30_000_000
        assert health["late_arrivals"] < 75


@pytest.mark.quiet
def test_line_keeps_its_rate(lab: DataPlaneLab) -> None:
    maps = {"S": policy(shape={"mode": "average", "rate": {"bps": 2_000_000}}, queue_limit={"packets": 1000})}
    lab.ask("configure", config=configuration(maps, Fa0_1={"service_policy_output": "S"}))
    start = send_udp(lab, SIZE, 500, 20e6)[0]
    wait_until(lambda: interfaces(lab)[OUT]["output"]["packets"] >= 500, "all packets have left", 10, step_s=0.001)
    # The first burst leaves at once: a committed and an excess burst of 25 ms each.
    assert time.monotonic() - start == pytest.approx(500 * COUNTED * 8 / 2e6 - 0.05, rel=0.05)


def test_daemon_survives_hostile_frames(lab: DataPlaneLab) -> None:
    code = f"""
import random, socket
random.seed(1)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
target = bytes.fromhex("ffffffffffff0200000000aa")
starts = [bytes.fromhex(start) for start in (
    "080045 08004f 080040 86dd60 8100ffff080045 88a800018100000186dd60 0806 88cc 0000".split() + [""]
)]
whole = 0
for n in range(4000):
    size = random.choice({HOSTILE_SIZES!r})
    frame = (target + random.choice(starts) + random.randbytes(size))[:max(size, 14)]
    s.send(frame)
    # The kernel itself drops frames that end within a VLAN tag.
    whole += not (frame[12:14] in (b"\\x81\\x00", b"\\x88\\xa8") and len(frame) < 18)
print(whole)
"""
    whole = int(lab.python("client", code))
    assert len(ping(lab, "client", SERVER, 3)) == 3
    health = lab.ask("health")
    assert health["received"] + health["malformed"] >= whole > 3000
    assert health["lost_input"] == 0


def test_oversized_frame_is_counted_and_dropped(lab: DataPlaneLab) -> None:
    lab.run("client", "ip link set eth0 mtu 9000")
    lab.run("R1.dp", "ip link set Fa0-0 mtu 9000")
    try:
        send_udp(lab, 4000, 5, 1e6)
    finally:
        lab.run("client", "ip link set eth0 mtu 1500")
        lab.run("R1.dp", "ip link set Fa0-0 mtu 1500")
    health = lab.ask("health")
    assert (health["malformed"], health["transmitted"]) == (5, 0)


def test_vlan_tag_stays_on_the_frame(lab: DataPlaneLab) -> None:
    receive = """
import socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("Fa0-0", 3))
s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
s.settimeout(5)
print(flush=True)
while True:
    data, control, *_ = s.recvmsg(2000, 100)
    if data[:6] == bytes.fromhex("0200000000bb"):
        status, *_, tci, tpid = struct.unpack("IIIHHHH", control[0][2])
        print(hex(tpid), hex(tci), data[12:].hex())
        break
"""
    send = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(bytes.fromhex("0200000000bb0200000000aa8100a00a0800") + bytes(50))
"""
    receiver = lab.spawn("R1", [sys.executable, "-c", receive])
    assert receiver.stdout is not None
    receiver.stdout.readline()
    lab.python("client", send)
    assert receiver.communicate(timeout=60)[0].decode().strip() == f"0x8100 0xa00a 0800{'00' * 50}"


def test_offloaded_checksum_is_completed(lab: DataPlaneLab) -> None:
    lab.run("client", "ethtool -K eth0 tx on")
    try:
        receiver = lab.spawn(
            "server",
            [
                sys.executable,
                "-c",
                "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5002)); s.settimeout(5)\n"
                "print(flush=True); print(s.recv(2000))",
            ],
        )
        assert receiver.stdout is not None
        receiver.stdout.readline()
        code = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'odd', ('{SERVER}', 5002))"
        lab.python("client", code)
        assert b"b'odd'" in receiver.communicate(timeout=60)[0]
    finally:
        lab.run("client", "ethtool -K eth0 tx off")


def taken_packets(lab: DataPlaneLab) -> int:
    """Return the packets that the daemon has received or lost."""
    health = lab.ask("health")
    return int(health["received"] + health["lost_input"])


def test_lost_input_is_reported() -> None:
    # A ring for one millisecond of a slow link has 512 frames.
    with DataPlaneLab(rates_bps=(10_000_000, 10_000_000), options=["--ring-ms", "1"]) as lab:
        spawn_sink(lab)
        ping(lab, "client", SERVER, 2)
        with stop_process(lab):
            send_udp(lab, SIZE, 2000, 200e6)
        wait_until(
            lambda: taken_packets(lab) >= 2000 - 20,
            "the daemon has seen all packets",
            report=lambda: str(taken_packets(lab)),
        )
        health = lab.ask("health")
        assert health["lost_input"] == pytest.approx(2000 - 512, abs=20)
        assert health["received"] + health["lost_input"] == pytest.approx(2000, abs=20)
        lab.ask("clear")
        assert lab.ask("health")["lost_input"] == 0


def test_daemon_counts_and_survives_a_shut_down_link(lab: DataPlaneLab) -> None:
    lab.run("server", "ip link set eth0 down")
    send_udp(lab, SIZE, 10, 1e6)
    lab.run("server", "ip link set eth0 up")
    lab.run("server", "ip route replace default via 10.0.20.1")
    assert len(ping(lab, "client", SERVER, 3)) == 3
    lab.run("R1.dp", "ip link set Fa0-1 down")
    send_udp(lab, SIZE, 10, 1e6)
    assert lab.ask("health")["unsent"] >= 10
    lab.run("R1.dp", "ip link set Fa0-1 up")
    assert len(ping(lab, "client", SERVER, 3)) == 3


def test_removed_interface_does_not_stop_the_others() -> None:
    with DataPlaneLab() as lab:
        lab.run("R1.dp", "ip link delete Fa0-1")
        assert len(ping(lab, "client", "10.0.10.1", 3)) == 3
        assert lab.ask("hello")["router"] == "R1"
        assert busy(lab) < 0.05


def test_configuration_is_activated_completely_or_not_at_all(lab: DataPlaneLab) -> None:
    good = configuration({"P": policy(police={"cir": {"bps": 1_000_000}})}, Fa0_1={"service_policy_output": "P"})
    lab.ask("configure", config=good)
    bad = configuration({"P": policy(police={"cir": {"bps": "fast"}})})
    reply = json.loads(lab.talk(json.dumps({"op": "configure", "config": bad}).encode() + b"\n"))
    assert reply["error"]["code"] == "bad_config"
    assert "policy_maps.P.classes[0].police.cir" in reply["error"]["message"]
    assert lab.ask("config")["config"] == good
    other = {**good, "router": "R2"}
    reply = json.loads(lab.talk(json.dumps({"op": "configure", "config": other}).encode() + b"\n"))
    assert "R2" in reply["error"]["message"]


def test_unknown_interface_is_refused_by_name(lab: DataPlaneLab) -> None:
    reply = json.loads(lab.talk(b'{"op": "counters", "interface": "Serial9/9"}\n'))
    assert "Serial9/9" in reply["error"]["message"]
    assert IN in reply["error"]["message"]
    assert list(lab.ask("counters", interface=IN)["interfaces"]) == [IN]


def test_control_socket_survives_bad_input(lab: DataPlaneLab) -> None:
    replies = [json.loads(line) for line in lab.talk(b'\xff\n{\n[]\n{"op": "x"}\n\n{"op": "hello"}\n').splitlines()]
    codes = [reply.get("error", {}).get("code") for reply in replies]
    assert codes == ["bad_json", "bad_json", "bad_request", "bad_request", None]
    assert (
        json.loads(lab.talk(b'{"op": "configure", "config": ' + b"[" * 100_000 + b"\n"))["error"]["code"] == "bad_json"
    )
    [long] = lab.talk(b" " * (4 << 20) + b"\n").splitlines()
    assert json.loads(long)["error"]["code"] == "bad_request"
    assert lab.ask("hello")["router"] == "R1"


def test_control_socket_accepts_many_connections(lab: DataPlaneLab) -> None:
    import socket

    connections = []
    try:
        for _ in range(100):  # more connections than it serves at a time
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(lab.control))
            connections.append(connection)
        for connection in connections[:64]:
            connection.settimeout(5)
            connection.sendall(b'{"op": "hello"}\n')
            assert b"qos-router" in connection.recv(4096)
    finally:
        for connection in connections:
            connection.close()
    assert lab.ask("hello")["format"] == 1


def busy(lab: DataPlaneLab) -> float:
    """Return the share of a second in which the daemon runs."""
    assert lab.process is not None
    file = Path(f"/proc/{lab.process.pid}/schedstat")
    before = int(file.read_text().split()[0])
    time.sleep(1)
    return (int(file.read_text().split()[0]) - before) / 1e9


@pytest.mark.quiet
def test_idle_daemon_sleeps(lab: DataPlaneLab) -> None:
    assert busy(lab) < 0.01


def test_client_exit_status_reports_success(lab: DataPlaneLab, tmp_path: Path) -> None:
    def ctl(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([BINARY, "ctl", "--control", lab.control, *words], capture_output=True, text=True)

    file = tmp_path / "config.json"
    file.write_text(json.dumps(configuration()))
    done = ctl("configure", str(file))
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
    file.write_text(json.dumps({"format": 1}))
    done = ctl("configure", str(file))
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (1, False)
    file.write_text("{")
    assert "not JSON" in ctl("configure", str(file)).stderr
    assert ctl("configure").returncode == 1
    done = ctl("counters", "--interface", IN)
    assert list(json.loads(done.stdout)["interfaces"]) == [IN]
    done = subprocess.run([BINARY, "ctl", "--control", "/nowhere", "hello"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "/nowhere" in done.stderr


@pytest.mark.parametrize("end", ["SIGTERM", "SIGINT", "shutdown"])
def test_daemon_ends_cleanly(end: str) -> None:
    with DataPlaneLab() as lab:
        assert lab.process is not None
        if end == "shutdown":
            lab.ask("shutdown")
        else:
            lab.signal(getattr(signal, end))
        assert lab.process.wait(PATIENCE_S) == 0
        assert lab.process.communicate()[1] == b""
        assert not lab.control.exists()
        # It starts again at the same path, even over the socket of a killed process.
        lab.start()
        lab.signal(signal.SIGKILL)
        lab.process.wait(PATIENCE_S)
        assert lab.control.exists()
        ports, control = str(lab.folder / "ports.json"), str(lab.control)
        again = lab.spawn("R1.dp", [str(BINARY), "run", "--name", "R1", "--ports", ports, "--control", control])

        def answers() -> bool:
            if again.poll() is not None:
                pytest.fail(again.communicate()[1].decode())
            return bool(lab.ask("hello")["router"] == "R1")

        # No process listens at the old socket, and there is no socket between its removal and the creation of the new
        # one.
        wait_until(answers, "the daemon answers again")


def test_missing_interface_is_named() -> None:
    with DataPlaneLab() as lab:
        lab.signal(signal.SIGTERM)
        assert lab.process is not None
        lab.process.wait(PATIENCE_S)
        lab.run("R1.dp", "ip link delete Fa0-1")
        with pytest.raises(RuntimeError) as caught:
            lab.start()
        message = str(caught.value)
        assert re.search(r'"Fa0-1" \(ports\.FastEthernet0/1\.wire\).*Fa0-0, Fa0-0\.in', message), message


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests already run as an ordinary user")
def test_daemon_works_as_an_ordinary_user() -> None:
    # The machine's Python, and a copy in a folder that everybody can read: the checkout may be in root's home.
    python = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")
    if python is None:
        pytest.skip("there is no python3 that every user can run")
    folder = Path(tempfile.mkdtemp())
    own = Path(dataplane.__file__)
    for file in (BINARY, own, own.with_name("ping.py"), own.parents[1] / "waiting.py"):
        shutil.copy(file, folder)
    folder.chmod(0o755)
    code = (
        "import os, pathlib, sys; sys.path.insert(0, sys.argv[1])\n"
        "import dataplane; dataplane.BINARY = pathlib.Path(sys.argv[1]) / 'qos-router'\n"
        "with dataplane.DataPlaneLab() as lab:\n"
        "    print(len(dataplane.ping(lab, 'client', dataplane.SERVER, 3)), os.geteuid())"
    )
    nobody = 65534
    command = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", "env", "HOME=/nonexistent"]
    try:
        words = [*command, python, "-B", "-c", code, str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd="/")
    finally:
        shutil.rmtree(folder)
    assert done.stdout.split() == ["3", str(nobody)], done.stderr
