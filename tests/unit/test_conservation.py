"""What hosts sent is what routers passed, dropped or still hold; who disagrees is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qoslab.analysis.conservation import BY_ITSELF, PACKETS, HostCount, disagreements
from qoslab.results import tables
from qoslab.results.tables import DROP_REASONS
from qoslab.run.cell.cards import read_devices
from qoslab.schema import load_sweep

TOPOLOGY = load_sweep(Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml", {}).experiment.topology
CELL = {"arm": "a", "repetition": 1, "cell": "a/1", "device": "R1"}
LAN, WAN = "FastEthernet0/0", "FastEthernet0/1"
BEFORE = 1_000_000
"""What the router had counted before the run."""


def counted(**changes: dict[str, int | None]) -> Any:
    """The interfaces of R1: 4000 packets came from the client and 3000 of them went on, 2000 came back."""
    grown: dict[str, dict[str, int | None]] = {
        LAN: {"input_packets": 4000, "output_packets": 2000, "output_drops": 0},
        WAN: {"input_packets": 2000, "output_packets": 3000, "output_drops": 1000},
    }
    rows = []
    for name, counters in grown.items():
        for time_s, share in ((-1.0, 0), (5.0, 0.5), (31.0, 1)):
            row: dict[str, object] = {**CELL, "interface": name, "time_s": time_s, "queue_depth": 0}
            for column, value in (counters | changes.get(name, {})).items():
                row[column] = None if value is None else BEFORE + int(value * share)
            rows.append(row)
    return tables.frame("interfaces", rows)


def policy(direction: str, **drops: int | None) -> Any:
    """The class of a policy, which tells drops of all reasons."""
    none = {f"drops_{reason}_packets": 0 for reason in DROP_REASONS}
    last = none | {f"drops_{reason}_packets": count for reason, count in drops.items()}
    place = {**CELL, "interface": WAN, "direction": direction, "policy": "P", "class": "class-default"}
    return tables.frame("classes", [place | none | {"time_s": -1.0}, place | last | {"time_s": 31.0}])


NO_POLICY = tables.frame("classes", [])
HOSTS = {
    "client": {"eth0": HostCount(4000, 2000, 4_000_000)},
    "server": {"eth0": HostCount(2000, 3000, 120_000)},
}


def found(interfaces: Any, classes: Any = NO_POLICY, hosts: Any = None, uncounted: tuple[str, ...] = ()) -> list[str]:
    return list(disagreements(TOPOLOGY, HOSTS if hosts is None else hosts, interfaces, classes, uncounted))


def test_what_came_in_left_or_was_dropped() -> None:
    assert found(counted()) == []
    # A few that devices say by themselves.
    assert found(counted(**{WAN: {"output_packets": 3030}})) == []


def test_packets_that_are_nowhere() -> None:
    (told,) = found(counted(**{WAN: {"output_drops": 900}}))
    assert told == (
        "R1 counts 6000 packets that came in, 5000 that left, 900 dropped and 0 that wait: 100 are nowhere, at most 60 "
        "can be trusted"
    )
    (told,) = found(counted(**{WAN: {"output_drops": 1100}}))
    assert "100 came from nowhere" in told


@pytest.mark.parametrize(
    ("of_port", "drops"),
    [
        # An interface that counts what its policy drops, one that does not, and one that leaves out the policer.
        (1000, {"tail": 600, "police": 400}),
        (0, {"tail": 600, "police": 400}),
        (600, {"tail": 600, "police": 400}),
        (None, {"tail": 600, "police": 400}),
    ],
)
def test_drops_of_a_policy(of_port: int | None, drops: dict[str, int]) -> None:
    assert found(counted(**{WAN: {"output_drops": of_port}}), policy("output", **drops)) == []


def test_drops_of_an_input_policy_and_what_waits() -> None:
    interfaces = counted(**{WAN: {"output_drops": 0}})
    assert len(found(interfaces)) == 1
    assert found(interfaces, policy("input", police=1000)) == []
    interfaces.loc[(interfaces["interface"] == WAN) & (interfaces["time_s"] > 30), "queue_depth"] = 1000
    assert found(interfaces) == []


def test_what_waits_in_the_queue_of_a_shaper() -> None:
    interfaces = counted(**{WAN: {"output_drops": 900}})
    shaped = policy("output")
    shaped["queue_discipline"], shaped["queue_depth_packets"] = "fifo", 0
    assert "100 are nowhere" in found(interfaces, shaped)[0]
    shaped.loc[shaped["time_s"] > 30, "queue_depth_packets"] = 100
    assert found(interfaces, shaped) == []
    shaped["queue_depth_packets"] = None
    assert found(interfaces, shaped) == []


def test_what_is_not_known_is_not_compared() -> None:
    wrong = {WAN: {"output_drops": 0}}
    assert found(counted(**wrong), uncounted=("R1",)) == []
    assert found(counted(**{WAN: {"output_drops": None}}), policy("output", tail=None)) == []
    assert found(counted(**{WAN: {"output_packets": None}}), hosts={}) == []
    of_one_port = counted(**wrong)
    assert found(of_one_port[of_one_port["interface"] == WAN], hosts={}) == []


def test_a_host_and_its_router_that_do_not_count_the_same() -> None:
    hosts = HOSTS | {"client": {"eth0": HostCount(4100, 2000, 4_000_000)}}
    (told,) = found(counted(), hosts=hosts)
    link = TOPOLOGY.links_of("client")[0][0].name
    assert told == (
        f"on the link {link} client sent 4100 packets by eth0, and R1 counts 4000 that {LAN} received: they may differ "
        "by 50"
    )
    hosts = HOSTS | {"server": {"eth0": HostCount(2000, 2800, 120_000)}}
    (told,) = found(counted(), hosts=hosts)
    assert "server received 2800 packets by eth0, and R1 counts 3000 that FastEthernet0/1 sent" in told


def test_what_real_routers_and_switches_say_by_themselves_in_a_long_cell() -> None:
    # A probe a second for ten minutes, and spanning tree and keepalives of a switch and a router.
    probes, length_s = 600, 600
    said = length_s // 2 + length_s // 10

    def of(extra: int, talking: tuple[str, ...]) -> list[str]:
        counts = {"input_packets": probes + extra, "output_packets": probes, "output_drops": 0}
        interfaces = counted(**{LAN: counts, WAN: {**counts, "input_packets": probes}})
        interfaces["time_s"] = interfaces["time_s"].replace(31.0, length_s - 1.0)
        hosts = {"client": {"eth0": HostCount(probes, probes, 60_000)}}
        return list(disagreements(TOPOLOGY, hosts, interfaces, NO_POLICY, talking=talking))

    assert of(said, ("R1",)) == []
    assert len(of(said, ())) == 2, "a virtual router says nothing"
    on_link, in_router = round(PACKETS + BY_ITSELF * length_s), round(PACKETS + 2 * BY_ITSELF * length_s)
    # With half a per cent of what is counted.
    assert of(on_link, ("R1",)) == []
    (told,) = of(on_link + 10, ("R1",))
    assert f"client sent {probes} packets by eth0" in told and "they may differ by 606" in told
    _, told = of(in_router + 20, ("R1",))
    assert f"{in_router + 20} are nowhere" in told


def test_a_card_that_cuts_segments_itself_is_not_compared() -> None:
    assert found(counted(), hosts=HOSTS | {"client": {"eth0": HostCount(400, 2000, 4_000_000)}}) == []


def test_what_a_line_lost_is_no_difference() -> None:
    hosts = HOSTS | {"server": {"eth0": HostCount(2000, 2800, 120_000)}}
    assert found(counted(**{WAN: {"link_output_lost_packets": 200}}), hosts=hosts) == []


def test_cards_are_read_from_the_kernel() -> None:
    text = """Inter-|   Receive                                             |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:       0       1    0    0    0     0          0         0       0       2    0    0    0     0       0      0
  eth0:  120000    3000    0    0    0     0          0         0  4000000   4001    0    0    0     0       0      0
"""
    assert read_devices(text)["eth0"] == {
        "received_bytes": 120_000,
        "received_packets": 3000,
        "sent_bytes": 4_000_000,
        "sent_packets": 4001,
    }
