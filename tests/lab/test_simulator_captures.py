"""Captures of the simulator, read by tshark and by qoslab's reader."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import levels
from qoslab.capture.packet_tables import TCP, column_array, read_packets
from qoslab.cli import main
from qoslab.system.programs import SIMULATOR, find_own_program

pytestmark = pytest.mark.lab

SCENARIO = Path(__file__).parents[2] / "crates/qos-sim/tests/golden/router.scenario.json"
EPOCH_NS = 1_700_000_000_000_000_000
CHECKS = ("ip.check_checksum", "tcp.check_checksum", "udp.check_checksum")


def simulate(folder: Path) -> tuple[dict[str, int], dict[str, Path]]:
    """Run a small scenario with a capture at each host and at the router; return the network's packet counts and the
    files.
    """
    scenario = json.loads(SCENARIO.read_text())
    places = {"client": ("client", "eth0"), "router": ("R1", "FastEthernet0/1"), "server": ("server", "eth0")}
    files = {name: folder / f"{name}.pcapng" for name in places}
    scenario["captures"] = [
        {"name": name, "node": node, "interface": interface, "snaplen": 2000, "file": str(files[name])}
        for name, (node, interface) in places.items()
    ]
    ran = subprocess.run(
        [str(find_own_program(SIMULATOR)), "run"],
        input=json.dumps(scenario),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)["packets"], files


def fields(file: Path, *names: str, only: str = "") -> list[list[str]]:
    """Return the fields of each packet from tshark."""
    command = ["tshark", "-n", "-r", str(file), "-T", "fields"]
    command += [word for name in names for word in ("-e", name)]
    command += [word for check in CHECKS for word in ("-o", f"{check}:TRUE")]
    output = subprocess.run([*command, "-Y", only or "frame"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in output.splitlines()]


def test_tshark_finds_no_error_and_the_counts_of_the_simulator(tmp_path: Path) -> None:
    counts, files = simulate(tmp_path)
    wrong = "_ws.malformed || ip.checksum.status != 1 || (tcp && tcp.checksum.status != 1)"
    for name, file in files.items():
        assert fields(file, "frame.number", only=f"{wrong} || (udp && udp.checksum.status != 1)") == [], name
        stamps = [column_array(packets, "time_ns") for packets in read_packets(file)]
        assert all((each[1:] >= each[:-1]).all() and each[0] >= EPOCH_NS for each in stamps), name
    outgoing = fields(files["client"], "frame.number", only="ip.src == 192.168.10.10")
    back = fields(files["server"], "frame.number", only="ip.src == 192.168.20.10")
    assert len(outgoing) + len(back) == counts["offered"]
    arrived = fields(files["server"], "ip.ttl", "ip.dsfield.dscp", only="ip.dst == 192.168.20.10 && udp")
    assert {tuple(each) for each in arrived} == {("63", "46")}
    handshake = fields(
        files["client"], "tcp.seq", "tcp.options.mss_val", "tcp.options.wscale.shift", only="tcp.flags.syn == 1"
    )
    assert handshake == [["0", "1460", "7"]] * 4
    # Some segments are lost on the link: the receiver reports them, and they are retransmitted.
    assert fields(files["client"], "tcp.options.sack_le", only="tcp.options.sack_le")
    assert fields(files["client"], "frame.number", only="tcp.analysis.retransmission")
    assert not fields(files["client"], "frame.number", only="tcp.analysis.ack_lost_segment")


def test_reader_of_captures_agrees_with_tshark(tmp_path: Path) -> None:
    _, files = simulate(tmp_path)
    (packets,) = read_packets(files["router"])
    output = fields(files["router"], "frame.time_epoch", "frame.len", "ip.proto", "tcp.srcport")
    assert len(output) == len(packets)
    for number in range(0, len(output), 97):
        stamp, length, protocol, port = output[number]
        seconds, nanoseconds = stamp.split(".")
        row = {
            name: int(column_array(packets, name)[number]) for name in ("time_ns", "bytes", "protocol", "source_port")
        }
        assert int(seconds) * 10**9 + int(nanoseconds) == row["time_ns"]
        assert (int(length), int(protocol)) == (row["bytes"], row["protocol"])
        assert int(protocol) != TCP or int(port) == row["source_port"]


@pytest.mark.long
def test_every_limiter_is_inferred_from_its_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(__file__).parents[2] / "experiments/bucket-truth.yml"
    some = (
        [] if levels.run_all_cases() else ["--arm", "policed", "--arm", "shaped", "--arm", "two-rate", "--arm", "line"]
    )
    assert main(["run", str(file), "--lab", "simulated", *some]) == 0
