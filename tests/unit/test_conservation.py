"""Packets sent by hosts are forwarded, dropped or queued by routers; a device that disagrees is named."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import sample_run

from qoslab.analysis.conservation import BY_ITSELF, PACKETS, HostCount, counter_disagreements, disagreements
from qoslab.analysis.raw import Row
from qoslab.model.drops import DROP_REASONS
from qoslab.results import Cell, tables
from qoslab.run.cell.nic_counters import read_devices
from qoslab.schema import load_sweep

TOPOLOGY = load_sweep(Path(__file__).parents[2] / "experiments/policing-vs-shaping.yml", {}).experiment.topology
CELL = {"arm": "a", "repetition": 1, "cell": "a/1", "device": "R1"}
LAN, WAN = "FastEthernet0/0", "FastEthernet0/1"
BEFORE = 1_000_000
"""Counters of the router before the run."""


def counted_interface(**changes: dict[str, int | None]) -> Any:
    """Return the counters of R1's interfaces: 4000 packets came from the client and 3000 of them went on, 2000 came
    back.
    """
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
    """Return a class of a policy with drops of all reasons."""
    none = {f"drops_{reason}_packets": 0 for reason in DROP_REASONS}
    last = none | {f"drops_{reason}_packets": count for reason, count in drops.items()}
    place = {**CELL, "interface": WAN, "direction": direction, "policy": "P", "class": "class-default"}
    return tables.frame("classes", [place | none | {"time_s": -1.0}, place | last | {"time_s": 31.0}])


def classes(drops: dict[str, dict[str, int | None]], direction: str = "output") -> Any:
    """Return classes by name, with earlier drops from before the run."""
    rows = []
    for name, counts in drops.items():
        place = {**CELL, "interface": WAN, "direction": direction, "policy": "P", "class": name}
        for time_s, share in ((-1.0, 0), (5.0, 0.5), (31.0, 1)):
            row: dict[str, object] = {**place, "time_s": time_s}
            for reason in DROP_REASONS:
                count = counts.get(reason, 0)
                row[f"drops_{reason}_packets"] = None if count is None else BEFORE + int(count * share)
            rows.append(row)
    return tables.frame("classes", rows)


NO_POLICY = tables.frame("classes", [])
HOSTS = {
    "client": {"eth0": HostCount(4000, 2000, 4_000_000)},
    "server": {"eth0": HostCount(2000, 3000, 120_000)},
}


def finding_rows(table: Any) -> list[Row]:
    """Return rows as the files of a cell give them."""
    return [
        {name: value for name, value in row.items() if pd.notna(value)}
        for row in table.astype(object).to_dict("records")
    ]


def find_differences(
    interfaces: Any, classes: Any = NO_POLICY, hosts: Any = None, uncounted: tuple[str, ...] = ()
) -> list[str]:
    of_hosts = HOSTS if hosts is None else hosts
    return list(disagreements(TOPOLOGY, of_hosts, finding_rows(interfaces), finding_rows(classes), uncounted))


def test_received_packets_are_sent_or_dropped() -> None:
    assert find_differences(counted_interface()) == []
    # A few packets that devices send by themselves.
    assert find_differences(counted_interface(**{WAN: {"output_packets": 3030}})) == []


def test_unaccounted_packets_are_reported() -> None:
    (reported,) = find_differences(counted_interface(**{WAN: {"output_drops": 900}}))
    assert reported == (
        "R1 counts 6000 received packets, 5000 sent, 900 dropped and 0 queued: 100 are unaccounted for, "
        "at most 60 are allowed"
    )
    (reported,) = find_differences(counted_interface(**{WAN: {"output_drops": 1100}}))
    assert "100 more than received" in reported


@pytest.mark.parametrize(
    ("of_port", "drops"),
    [
        # An interface that counts the drops of its policy, one that does not, and one that omits the policer.
        (1000, {"tail": 600, "police": 400}),
        (0, {"tail": 600, "police": 400}),
        (600, {"tail": 600, "police": 400}),
        (None, {"tail": 600, "police": 400}),
    ],
)
def test_policy_drops_count_as_dropped(of_port: int | None, drops: dict[str, int]) -> None:
    assert find_differences(counted_interface(**{WAN: {"output_drops": of_port}}), policy("output", **drops)) == []


def test_drops_of_classes_are_added_up_without_their_children() -> None:
    untold = counted_interface(**{WAN: {"output_drops": None}})
    assert find_differences(untold, classes({"A": {"tail": 600}, "B": {"police": 400}, "B/inner": {"tail": 400}})) == []
    (reported,) = find_differences(untold, classes({"A": {"tail": 600}, "B": {"police": 300}}))
    assert "900 dropped" in reported and "100 are unaccounted for" in reported


def test_port_counts_queue_drops_and_its_policer_the_rest() -> None:
    """Return a class with its policed packets, and without other drops."""
    interfaces = counted_interface(**{WAN: {"output_drops": 600}})
    assert find_differences(interfaces, classes({"A": {"tail": None, "police": 400}})) == []
    (reported,) = find_differences(interfaces, classes({"A": {"tail": None, "police": 250}}))
    assert "850 dropped" in reported and "150 are unaccounted for" in reported
    assert "600 dropped" in find_differences(interfaces, classes({"A": {"tail": None, "police": None}}))[0]


def test_packets_denied_by_access_lists_count_as_dropped() -> None:
    denied = {"denied_input_packets": 700, "denied_output_packets": 300}
    assert find_differences(counted_interface(**{WAN: {"output_drops": 0, **denied}})) == []
    (reported,) = find_differences(
        counted_interface(**{WAN: {"output_drops": 500, **denied}}), classes({"A": {"police": 100}}, "input")
    )
    assert "1600 dropped" in reported and "600 more than received" in reported


def test_conservation_tolerance_is_exact() -> None:
    # Half a per cent of 6000 packets, and 30.
    assert find_differences(counted_interface(**{WAN: {"output_drops": 940}})) == []
    assert (
        "61 are unaccounted for, at most 60 are allowed"
        in find_differences(counted_interface(**{WAN: {"output_drops": 939}}))[0]
    )
    hosts = {"client": {"eth0": HostCount(6000, 2000, 6_000_000)}}
    assert find_differences(counted_interface(**{LAN: {"input_packets": 5940}}), hosts=hosts, uncounted=("R1",)) == []
    (reported,) = find_differences(counted_interface(**{LAN: {"input_packets": 5939}}), hosts=hosts, uncounted=("R1",))
    assert "the two may differ by at most 60" in reported


def test_conservation_check_needs_two_readings() -> None:
    interfaces = counted_interface(**{WAN: {"output_drops": 900}})
    assert len(find_differences(interfaces[interfaces["time_s"] != 5.0])) == 1
    assert find_differences(interfaces[interfaces["time_s"] < 5.0]) == []


def test_port_with_subinterfaces_counts_for_all_of_them() -> None:
    def end(interface: str) -> tuple[object, ...]:
        return (None, SimpleNamespace(interface=interface), None)

    topology: Any = SimpleNamespace(node_links=lambda name: [end(LAN), end(f"{WAN}.10"), end(f"{WAN}.20")])
    assert list(disagreements(topology, {}, finding_rows(counted_interface()), [])) == []
    (reported,) = disagreements(topology, {}, finding_rows(counted_interface(**{WAN: {"output_drops": 0}})), [])
    assert "6000 received packets" in reported and "1000 are unaccounted for" in reported


def test_drops_of_an_input_policy_and_waiting_packets_count() -> None:
    interfaces = counted_interface(**{WAN: {"output_drops": 0}})
    assert len(find_differences(interfaces)) == 1
    assert find_differences(interfaces, policy("input", police=1000)) == []
    at_the_end = (interfaces["interface"] == WAN) & (interfaces["time_s"] > 30)
    interfaces.loc[at_the_end, "queue_depth"] = 1000
    assert find_differences(interfaces) == []
    interfaces.loc[at_the_end, ["queue_depth", "tx_ring_depth"]] = 600, 400
    assert find_differences(interfaces) == []
    # A shaper's queue comes before the port's.
    interfaces.loc[at_the_end, ["queue_depth", "tx_ring_depth"]] = 100, 200
    shaped = policy("output")
    shaped["queue_discipline"], shaped["queue_depth_packets"] = "fifo", 700
    assert find_differences(interfaces, shaped) == []


def test_packets_in_the_queue_of_a_shaper_count() -> None:
    interfaces = counted_interface(**{WAN: {"output_drops": 900}})
    shaped = policy("output")
    shaped["queue_discipline"], shaped["queue_depth_packets"] = "fifo", 0
    assert "100 are unaccounted for" in find_differences(interfaces, shaped)[0]
    shaped.loc[shaped["time_s"] > 30, "queue_depth_packets"] = 100
    assert find_differences(interfaces, shaped) == []
    shaped["queue_depth_packets"] = None
    assert find_differences(interfaces, shaped) == []


def test_conservation_check_ignores_unknown_counts() -> None:
    wrong = {WAN: {"output_drops": 0}}
    assert find_differences(counted_interface(**wrong), uncounted=("R1",)) == []
    assert find_differences(counted_interface(**{WAN: {"output_drops": None}}), policy("output", tail=None)) == []
    assert find_differences(counted_interface(**{WAN: {"output_packets": None}}), hosts={}) == []
    assert find_differences(counted_interface(**{WAN: {"output_drops": None}})) == []
    of_one_port = counted_interface(**wrong)
    assert find_differences(of_one_port[of_one_port["interface"] == WAN], hosts={}) == []


def test_disagreement_of_host_and_router_is_reported() -> None:
    hosts = HOSTS | {"client": {"eth0": HostCount(4100, 2000, 4_000_000)}}
    (reported,) = find_differences(counted_interface(), hosts=hosts)
    link = TOPOLOGY.node_links("client")[0][0].name
    assert reported == (
        f"on the link {link}, client sent 4100 packets on eth0, but R1 counts 4000 packets that {LAN} received: "
        "the two may differ by at most 50"
    )
    hosts = HOSTS | {"server": {"eth0": HostCount(2000, 2800, 120_000)}}
    (reported,) = find_differences(counted_interface(), hosts=hosts)
    assert "server received 2800 packets on eth0, but R1 counts 3000 packets that FastEthernet0/1 sent" in reported


def test_missing_counter_is_replaced_by_others() -> None:
    hosts = HOSTS | {"client": {"eth0": HostCount(4000, 2200, 4_000_000)}}
    (reported,) = find_differences(counted_interface(**{LAN: {"input_packets": None}}), hosts=hosts)
    assert "client received 2200 packets on eth0" in reported


def test_nic_with_segmentation_offload_among_two_is_ignored() -> None:
    link: Any = SimpleNamespace(name="lan")
    ends = [(SimpleNamespace(interface=card), SimpleNamespace(node="R1", interface=LAN)) for card in ("eth0", "eth1")]
    topology: Any = SimpleNamespace(
        node_links=lambda name: [(link, *each) for each in ends] if name == "client" else []
    )
    cards = {"eth0": HostCount(400, 2000, 4_000_000), "eth1": HostCount(4200, 2000, 4_000_000)}
    (reported,) = disagreements(topology, {"client": cards}, finding_rows(counted_interface()), [])
    assert "client sent 4200 packets on eth1" in reported


def test_own_packets_of_real_devices_in_a_long_cell_are_tolerated() -> None:
    # A probe per second for ten minutes, and spanning tree and keepalives of a switch and a router.
    probes, length_s = 600, 600
    text = length_s // 2 + length_s // 10

    def disagreement_lines(extra: int, talking: tuple[str, ...]) -> list[str]:
        counts = {"input_packets": probes + extra, "output_packets": probes, "output_drops": 0}
        interfaces = counted_interface(**{LAN: counts, WAN: {**counts, "input_packets": probes}})
        interfaces["time_s"] = interfaces["time_s"].replace(31.0, length_s - 1.0)
        hosts = {"client": {"eth0": HostCount(probes, probes, 60_000)}}
        return list(disagreements(TOPOLOGY, hosts, finding_rows(interfaces), [], talking=talking))

    assert disagreement_lines(text, ("R1",)) == []
    assert len(disagreement_lines(text, ())) == 2, "a virtual router says nothing"
    on_link, in_router = round(PACKETS + BY_ITSELF * length_s), round(PACKETS + 2 * BY_ITSELF * length_s)
    # With half a per cent of the counted packets.
    assert disagreement_lines(on_link, ("R1",)) == []
    (reported,) = disagreement_lines(on_link + 10, ("R1",))
    assert f"client sent {probes} packets on eth0" in reported and "the two may differ by at most 606" in reported
    _, reported = disagreement_lines(in_router + 20, ("R1",))
    assert f"{in_router + 20} are unaccounted for" in reported


def test_nic_with_segmentation_offload_is_not_compared() -> None:
    assert (
        find_differences(counted_interface(), hosts=HOSTS | {"client": {"eth0": HostCount(400, 2000, 4_000_000)}}) == []
    )


def test_configured_loss_of_a_line_is_not_a_difference() -> None:
    hosts = HOSTS | {"server": {"eth0": HostCount(2000, 2800, 120_000)}}
    assert find_differences(counted_interface(**{WAN: {"link_output_lost_packets": 200}}), hosts=hosts) == []
    hosts = HOSTS | {"client": {"eth0": HostCount(4100, 2000, 4_000_000)}}
    assert find_differences(counted_interface(**{LAN: {"link_input_lost_packets": 100}}), hosts=hosts) == []


def test_nic_counters_are_read_from_the_kernel() -> None:
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


class TestCell:
    """Tests of a whole cell: the counters of its router over 6 s, with only WAN counted, and the NICs of its hosts."""

    @pytest.fixture
    def cell(self, tmp_path: Path) -> Cell:
        return sample_run.cells_of(sample_run.make_run(tmp_path / "runs"))[0]

    @staticmethod
    def reported(cell: Cell) -> list[str]:
        return counter_disagreements(files := cell.files(), files.record(), files.experiment())

    @staticmethod
    def count(cell: Cell, **ports: dict[str, int]) -> None:
        """Make the interfaces count so many packets at the end, and none at the start."""
        lines = [json.loads(line) for line in cell.counters("R1").read_text().splitlines()]
        template = json.dumps(lines[0]["interfaces"][WAN] | {"policy_output": None})
        for number, line in enumerate(lines):
            line["interfaces"] = {name: json.loads(template) for name in (LAN, WAN)}
            for name, port in line["interfaces"].items():
                for way in ("input", "output"):
                    port[way]["packets"] = 7 + (ports[name][way] if number == len(lines) - 1 else 0)
        cell.counters("R1").write_text("".join(json.dumps(line) + "\n" for line in lines))

    @staticmethod
    def card(cell: Cell, host: str, sent: int, received: int) -> None:
        """Make a host's NIC count so many packets."""
        none = dict.fromkeys(("received_bytes", "received_packets", "sent_bytes", "sent_packets"), 11)
        after = {"sent_packets": sent + 11, "received_packets": received + 11, "sent_bytes": 11, "received_bytes": 11}
        cell.host_cards(host).parent.mkdir(exist_ok=True)
        cell.host_cards(host).write_text(json.dumps({"before": {"eth0": none}, "after": {"eth0": after}}))

    @staticmethod
    def read(cell: Cell, *at_s: float, lost: int = 0) -> None:
        """Turn R1 into a real router whose show commands report no forwarding of received packets."""
        readings = []
        for each in at_s:
            asked_ns = int((sample_run.STARTED.timestamp() + each) * 1e9)
            for name, came in ((LAN, lost * (each == at_s[-1])), (WAN, 0)):
                entry = {"counters": {"in_pkts": 5 + came, "out_pkts": 5}, "queues": {"total_output_drop": 0}}
                text = {"command": f"show interfaces {name}", "parsed": {name: entry}, "raw": ""}
                readings.append(text | {"before_ns": asked_ns, "after_ns": asked_ns})
        cell.counters("R1").unlink()
        cell.readings("R1").parent.mkdir()
        cell.write_readings("R1", readings)

    def test_consistent_cell_has_no_finding(self, cell: Cell) -> None:
        assert self.reported(cell) == []
        self.count(cell, **{LAN: {"input": 500, "output": 300}, WAN: {"input": 300, "output": 500}})
        self.card(cell, "client", 500, 300)
        self.card(cell, "server", 300, 500)
        assert self.reported(cell) == []

    def test_disagreeing_host_and_router_of_a_cell_are_reported(self, cell: Cell) -> None:
        self.count(cell, **{LAN: {"input": 500, "output": 300}, WAN: {"input": 300, "output": 400}})
        self.card(cell, "client", 600, 300)
        assert self.reported(cell) == [
            f"on the link lan, client sent 600 packets on eth0, but R1 counts 500 packets that {LAN} received: "
            "the two may differ by at most 33",
            "R1 counts 800 received packets, 700 sent, 0 dropped and 0 queued: 100 are unaccounted for, "
            "at most 34 are allowed",
        ]

    @pytest.mark.parametrize(("file", "line"), [("ios", ""), ("before.ios", "!"), ("running.ios", "!")])
    def test_uncounted_drops_of_a_router_are_reported(self, cell: Cell, file: str, line: str) -> None:
        self.count(cell, **{LAN: {"input": 500, "output": 300}, WAN: {"input": 300, "output": 400}})
        configuration = cell.configuration(f"R1.{file}")
        configuration.write_text(f"interface {WAN}\n ip access-group 101 in\n{line}")
        # The data plane's counters include packets denied by an access list.
        assert len(self.reported(cell)) == 1
        configuration.write_text(f"interface {WAN}\n rate-limit output 8000 1500 2000 conform-action transmit\n{line}")
        assert self.reported(cell) == []

    @pytest.mark.parametrize("words", ["ip access-group 101 in", "ipv6 traffic-filter A in", "ip verify unicast"])
    def test_denied_packets_of_a_real_router_are_not_compared(self, cell: Cell, words: str) -> None:
        self.read(cell, -1, 5, lost=600)
        assert len(self.reported(cell)) == 1
        cell.configuration("R1.ios").write_text(f"interface {LAN}\n {words}\n")
        assert self.reported(cell) == []

    @pytest.mark.parametrize(("begun_s", "disagreements"), [(-1, 1), (-595, 0)])
    def test_own_packets_of_a_real_router_are_tolerated(self, cell: Cell, begun_s: int, disagreements: int) -> None:
        """Allow the packets of a real router itself, on each of its two lines, for six seconds and for ten minutes."""
        self.read(cell, begun_s, 5, lost=600)
        assert len(self.reported(cell)) == disagreements

    def test_counters_that_end_too_early_are_reported(self, cell: Cell) -> None:
        self.read(cell, -1, 2)
        (reported,) = self.reported(cell)
        assert reported.startswith("the last counters of R1 were taken 2.0 s before the end of the traffic")

    def test_damaged_frames_are_reported(self, cell: Cell) -> None:
        self.card(cell, "client", 500, 300)
        whole = cell.host_cards("client").read_text()
        for text in (whole[:-5], whole.replace("eth0", "eth1", 1), "[" * 100_000, "[]"):
            cell.host_cards("client").write_text(text)
            assert self.reported(cell) == ["the interface counters of the hosts are damaged"]
        cell.counters("R1").write_text("")
        assert self.reported(cell) == ["the counters cannot be read: R1 reported no counters"]
