"""Reasons of invalid cells: each threshold at its bound and beyond it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from test_results import HEALTH

from qoslab.analysis.packets import shift_clock
from qoslab.capture.packet_tables import column_array
from qoslab.model.experiment import Flow, Probe, Topology
from qoslab.model.instants import measurement_demand
from qoslab.results import ClockRecord, Health, HostClockRecord, SenderRecord, StallRecord
from qoslab.results.records import (
    CLOCK_STEP_NS,
    LATE_ARRIVAL_SHARE,
    SENDER_FILLS,
    SENDER_LATE_MS,
    SENDER_SHORT,
    SERIES_LATE_NS,
)
from qoslab.run.cell.clock_checks import HostClocks, MachineClocks
from qoslab.run.cell.pace import packet_directions, probe_sender, sender_precisions, time_dependent_upstreams
from qoslab.run.protocols import ClockReading
from qoslab.schema import load_sweep
from qoslab.system import program_formats
from qoslab.traffic import FlowResult, SendingPace, StreamResult
from qoslab.traffic.base import datagram_pace

TRAFFIC_S = 30.0
EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def health(**message: Any) -> Health:
    return Health.model_validate(HEALTH | {"received": 10_000} | message)


class TestRouters:
    @pytest.mark.parametrize(
        ("message", "word"),
        [({"unsent": 1}, "did not deliver 1 frames"), ({"malformed": 1}, "1 frames could not be passed")],
    )
    def test_unexplained_frame_is_reported(self, message: dict[str, int], word: str) -> None:
        (reason,) = health(**message).reasons("R1")
        assert reason.startswith("R1: ") and word in reason
        # A machine with more time would do no better.
        assert health(**message).lateness("R1", TRAFFIC_S) == ()

    def test_late_returning_frames_are_reported(self) -> None:
        most = int(10_000 * LATE_ARRIVAL_SHARE)
        assert health(late_arrivals=most).lateness("R1", TRAFFIC_S) == ()
        (reason,) = health(late_arrivals=most + 1).lateness("R1", TRAFFIC_S)
        assert "11 of 10000 frames arrived from the kernel too late" in reason

    def test_forwarding_through_the_kernel_is_reported_without_effect_on_the_verdict(self) -> None:
        text = {"forwarded": 5, "handed_to_kernel": 2, "dumps": 1, "overruns": 0}
        assert health(forwarding=text | {"through_kernel": None}).warnings("R1", TRAFFIC_S) == ()
        through = health(forwarding=text | {"through_kernel": "nftables are in use"})
        (warning,) = through.warnings("R1", TRAFFIC_S)
        assert warning == "R1: packets in transit were forwarded by the kernel: nftables are in use"
        assert through.reasons("R1") == through.lateness("R1", TRAFFIC_S) == ()

    def test_late_packet_counts_if_the_next_router_depends_on_time(self) -> None:
        def with_p999(ns: int) -> Health:
            punctual, late = (HEALTH["lateness_ns"] | {"p999": each, "max": each} for each in (1_000, ns))
            return health(lateness_ns=late, lateness_by_port={"Fa0/0": punctual, "Fa0/1": late})

        feeds = {"Fa0/1": ("R2",)}
        assert with_p999(SERIES_LATE_NS).lateness("R1", TRAFFIC_S, feeds) == ()
        late = with_p999(SERIES_LATE_NS + 1)
        assert late.lateness("R1", TRAFFIC_S) == ()
        (reason,) = late.lateness("R1", TRAFFIC_S, feeds)
        assert reason.startswith("R1 Fa0/1: more than 0.1% of its packets") and "R2 received them in bursts" in reason

    def test_late_packet_counts_on_its_own_link(self) -> None:
        late = {"p999": SERIES_LATE_NS + 1, "max": SERIES_LATE_NS + 1}
        by_port = {"Fa0/0": HEALTH["lateness_ns"] | late, "Fa0/1": HEALTH["lateness_ns"] | {"p999": 1_000}}
        found = health(lateness_ns=HEALTH["lateness_ns"] | late, lateness_by_port=by_port)
        assert found.lateness("R1", TRAFFIC_S, {"Fa0/1": ("R2",)}) == ()
        (reason,) = found.lateness("R1", TRAFFIC_S, {"Fa0/0": ("R3",), "Fa0/1": ("R2",)})
        assert reason.startswith("R1 Fa0/0: ") and "R3" in reason

    def test_maximum_tolerates_no_reordered_frame(self) -> None:
        assert health(late_arrivals=0).lateness("R1", TRAFFIC_S, one_decides=True) == ()
        (reason,) = health(late_arrivals=1).lateness("R1", TRAFFIC_S, one_decides=True)
        assert reason.endswith("their turn, none is acceptable because a maximum is expected")
        assert health(late_arrivals=1).lateness("R1", TRAFFIC_S) == ()

    def test_maximum_tolerates_no_late_packet_of_a_series(self) -> None:
        def with_max(ns: int) -> Health:
            return health(lateness_by_port={"Fa0/1": HEALTH["lateness_ns"] | {"p999": 1_000, "max": ns}})

        feeds = {"Fa0/1": ("R2",)}
        assert with_max(SERIES_LATE_NS).lateness("R1", TRAFFIC_S, feeds, one_decides=True) == ()
        late = with_max(SERIES_LATE_NS + 1)
        assert late.lateness("R1", TRAFFIC_S, feeds) == ()
        (reason,) = late.lateness("R1", TRAFFIC_S, feeds, one_decides=True)
        assert reason.startswith("R1 Fa0/1: a packet left over 1 ms late (1 ms, although a maximum is expected)")
        # For a host this changes no decision.
        assert late.lateness("R1", TRAFFIC_S, one_decides=True) == ()

    def test_records_without_separate_ports_are_read(self) -> None:
        before = HEALTH | {"lateness_ns": HEALTH["lateness_ns"] | {"p999": SERIES_LATE_NS + 1}}
        before.pop("lateness_by_port", None)
        assert Health.model_validate(before).lateness("R1", TRAFFIC_S, {"Fa0/1": ("R2",)}) == ()


class TestSeries:
    TOPOLOGY = Topology.model_validate_json("""{
        "nodes": {"h": {"platform": "host"}, "A": {"platform": "engine"}, "B": {"platform": "engine"}},
        "links": [
            {"name": "lan", "rate": "100 Mb/s",
             "ends": [{"node": "h", "interface": "eth0"}, {"node": "A", "interface": "FastEthernet0/0"}]},
            {"name": "wan", "rate": "10 Mb/s",
             "ends": [{"node": "A", "interface": "FastEthernet0/1"}, {"node": "B", "interface": "FastEthernet0/1"}]}
        ]}""")
    THERE = (("h", "B"),)

    @staticmethod
    def config(interface: str = "", side: str = "", **action: Any) -> dict[str, Any]:
        attached = {interface: {f"service_policy_{side}": "Outer"}} if interface else {}
        inner = {"classes": [{"name": "class-default", "set": [], **action}]}
        outer = {"classes": [{"name": "class-default", "service_policy": "Inner"}]}
        return {"policy_maps": {"Outer": outer, "Inner": inner}, "interfaces": attached, "switch": None}

    @pytest.mark.parametrize(
        ("second", "fed"),
        [
            (config("FastEthernet0/1", "input", police={"cir": 1}), ("B",)),
            (config("FastEthernet0/0", "output", shape={"average": 1}), ("B",)),
            # Packets that arrive there meet neither: output goes back to the first router, or no packet waits.
            (config("FastEthernet0/1", "output", police={"cir": 1}), ()),
            (config("FastEthernet0/0", "input", police={"cir": 1}), ()),
            (config("FastEthernet0/1", "input", set=[{"field": "dscp", "value": 46}]), ()),
            (config(police={"cir": 1}), ()),
            ({"switch": {}}, ("B",)),
        ],
    )
    def test_lateness_is_attributed_to_the_next_timed_router(
        self, second: dict[str, Any], fed: tuple[str, ...]
    ) -> None:
        expected = {"A": {"FastEthernet0/1": fed} if fed else {}, "B": {}}
        assert time_dependent_upstreams(self.TOPOLOGY, {"A": self.config(), "B": second}, self.THERE) == expected

    def test_single_router_has_no_dependents(self) -> None:
        policed = self.config("FastEthernet0/0", "input", police={"cir": 1})
        assert time_dependent_upstreams(self.TOPOLOGY, {"A": policed}, self.THERE) == {"A": {}}

    RING = Topology.model_validate_json(
        json.dumps(
            {
                "nodes": {name: {"platform": "host" if name in "hs" else "engine"} for name in "hABCs"},
                "links": [
                    {
                        "name": f"{a}{b}",
                        "rate": "10 Mb/s",
                        "ends": [{"node": a, "interface": f"to-{b}"}, {"node": b, "interface": f"to-{a}"}],
                    }
                    for a, b in ("hA", "AB", "BC", "AC", "Cs")
                ],
            }
        )
    )

    @pytest.mark.parametrize(
        ("traffic", "fed"),
        [
            # Directly by C or via B: the routers know the path.
            ([("h", "s")], {"A": {"to-B", "to-C"}, "B": {"to-C"}, "C": set()}),
            ([("h", "B")], {"A": {"to-B", "to-C"}, "B": set(), "C": {"to-B"}}),
            ([("A", "h")], {"A": set(), "B": set(), "C": set()}),
            ([], {"A": set(), "B": set(), "C": set()}),
        ],
    )
    def test_links_on_possible_paths_count(self, traffic: list[tuple[str, str]], fed: dict[str, set[str]]) -> None:
        timed = self.config("", "") | {"switch": {}}
        found = time_dependent_upstreams(self.RING, dict.fromkeys("ABC", timed), traffic)
        assert {router: set(ports) for router, ports in found.items()} == fed

    def test_tcp_and_probes_are_answered(self) -> None:
        probe = Probe.model_validate_json('{"name": "p", "type": "icmp-echo", "from": "A", "to": "s"}')
        flows = [udp_flow(), Flow.model_validate_json('{"name": "t", "tool": "iperf3", "from": "h", "to": "B"}')]
        expected = {("h", "s"), ("h", "B"), ("B", "h"), ("A", "s"), ("s", "A")}
        assert packet_directions(flows, [probe]) == expected


def udp_flow(**keys: Any) -> Flow:
    described = {"name": "x", "tool": "iperf3", "from": "h", "to": "s", "protocol": "udp", "rate": "1 Mb/s"} | keys
    return Flow.model_validate_json(json.dumps(described))


def sender_record(*rates: float | None) -> list[StreamResult]:
    return [StreamResult(number, None, 1.0, 0, 0.0, sender_bps=rate) for number, rate in enumerate(rates, 1)]


def test_arms_decided_by_one_packet_are_known() -> None:
    def deciding(name: str) -> list[str]:
        experiment = load_sweep(EXPERIMENTS / f"{name}.yml", {}).experiment
        return [arm.name for arm in experiment.arms if measurement_demand(experiment, arm.name).depends_on_one_packet]

    assert deciding("tx-ring-limit") == ["variable", "cbr"]
    assert deciding("wfq-precedence") == ["wfq"]
    # Its greatest goodput is that of a flow, thousands of packets.
    assert deciding("hqf-fair-queue") == []


class TestSenders:
    def test_sender_thresholds_are_exact(self) -> None:
        kept = SenderRecord(shortfall=SENDER_SHORT, late_p99_ms=SENDER_LATE_MS, late_max_ms=90.0)
        assert kept.lateness('traffic "x"') == ()
        short = SenderRecord(shortfall=SENDER_SHORT * 1.01)
        assert len(short.lateness("x")) == 1 and "skipped 1.01%" in short.lateness("x")[0]
        late = SenderRecord(shortfall=0.0, late_p99_ms=SENDER_LATE_MS * 1.01)
        assert late.lateness('probe "x"') == (
            'probe "x": more than 1% of its datagrams left over 1 ms late (99 %: 1.01 ms), so they left in bursts',
        )

    def test_one_late_datagram_invalidates_an_expected_maximum(self) -> None:
        def record(late_max_ms: float, lost: float | None = None) -> SenderRecord:
            return SenderRecord(shortfall=0.0, late_p99_ms=SENDER_LATE_MS, late_max_ms=late_max_ms, lost=lost)

        assert record(SENDER_LATE_MS).lateness("x", one_decides=True) == ()
        late = record(7.25)
        assert late.lateness("x") == ()
        assert late.lateness('probe "x"', one_decides=True) == (
            'probe "x": a datagram left 7.25 ms late, at most 1 ms is acceptable because a maximum is expected',
        )
        # A class that loses so much keeps its queue full, so late packets find others in front of them.
        assert record(7.25, lost=SENDER_FILLS).lateness("x", one_decides=True) == ()
        assert len(record(7.25, lost=SENDER_FILLS * 0.99).lateness("x", one_decides=True)) == 1
        # Its mean cannot be trusted nonetheless.
        bunched = SenderRecord(shortfall=0.0, late_p99_ms=SENDER_LATE_MS * 1.01, late_max_ms=7.25, lost=0.5)
        assert len(bunched.lateness("x", one_decides=True)) == 1

    def test_packets_missed_by_receivers_are_counted(self) -> None:
        def precisions_of(*streams: tuple[int | None, int | None]) -> float | None:
            results = tuple(
                StreamResult(number, None, 1.0, 0, 0.0, datagrams=datagrams, lost=lost)
                for number, (datagrams, lost) in enumerate(streams, 1)
            )
            reported = FlowResult("flood", "udp", "0", results, (), pace=SendingPace(0.0, 0.2, 3.0))
            return sender_precisions(TestSeries.TOPOLOGY, {"x": udp_flow()}, {"x": reported})["x"].lost

        assert precisions_of((100, 10), (300, 70)) == 0.2
        assert precisions_of((100, 0)) == 0.0
        assert precisions_of((100, 10), (None, None)) is precisions_of() is None

    def test_lateness_of_probe_packets_is_reported(self) -> None:
        """Compare lateness with the most punctual probe of the run: the start of a run depends on its program alone."""

        def sample(run: int, packet: int, sent_ns: int) -> program_formats.Sample:
            return {"run": run, "packet": packet, "sent_ns": sent_ns, "arrived_ns": sent_ns + 10**6, "rtt_ms": 1}

        def run(number: int, begin_ns: int, late_ns: dict[int, int]) -> list[program_formats.Sample]:
            return [sample(number, k, begin_ns + k * 20_000_000 + late_ns.get(k, 0)) for k in range(1, 101)]

        two = [*run(1, 7, {1: 3_000_000}), *run(2, 999_999_999, {50: 2_000_000})]
        record = probe_sender(two, 20_000_000)
        assert record is not None and (record.late_p99_ms, record.late_max_ms, record.lateness("p")) == (0.0, 3.0, ())
        record = probe_sender([*two, sample(2, 101, 999_999_999 + 101 * 20_000_000 + 1_500_000)], 20_000_000)
        assert record is not None and record.late_p99_ms == 1.5 and len(record.lateness("p")) == 1
        assert probe_sender([], 20_000_000) is None

    def test_achieved_rate_of_an_iperf_sender_is_checked(self) -> None:
        assert datagram_pace(udp_flow(), sender_record(990e3, 970e3)) == SendingPace(pytest.approx(0.02))
        assert datagram_pace(udp_flow(), sender_record(1.01e6)) == SendingPace(0.0)
        assert datagram_pace(udp_flow(), sender_record(1e6, None)) is None
        assert datagram_pace(udp_flow(protocol="tcp"), sender_record(0.5e6)) is None

    def test_sender_limited_by_its_link_is_not_late(self) -> None:
        slow = TestSeries.TOPOLOGY
        result = FlowResult("iperf3", "udp", "3", tuple(sender_record(10e6)), (), pace=SendingPace(0.5))
        assert sender_precisions(slow, {"x": udp_flow(rate="20 Mb/s")}, {"x": result})["x"].shortfall == 0.5
        assert sender_precisions(slow, {"x": udp_flow(rate="90 Mb/s")}, {"x": result}) == {}
        reported = FlowResult("flood", "udp", "0", (), (), pace=SendingPace(0.0, 0.2, 3.0))
        assert sender_precisions(slow, {"x": udp_flow(rate="90 Mb/s")}, {"x": reported})["x"].late_p99_ms == 0.2
        assert sender_precisions(slow, {"x": udp_flow()}, {"x": FlowResult("iperf3", "tcp", "3", (), ())}) == {}


class TestClocks:
    def test_bounds_apply_exactly(self) -> None:
        assert ClockRecord(stepped_ns=CLOCK_STEP_NS, asleep_ns=CLOCK_STEP_NS).reasons() == ()
        (stepped,) = ClockRecord(stepped_ns=-CLOCK_STEP_NS - 1, asleep_ns=0).reasons()
        assert "stepped by -1 ms" in stepped
        (asleep,) = ClockRecord(stepped_ns=0, asleep_ns=5 * 10**9).reasons()
        assert "suspended for 5 s" in asleep

    def test_steady_clocks_are_valid(self) -> None:
        assert MachineClocks.read().changes_until_now().reasons() == ()

    @pytest.mark.parametrize(
        ("moved", "found"),
        [
            ({time.CLOCK_REALTIME: 7 * 10**6}, (7 * 10**6, 0)),
            # The wall clock continues while the machine sleeps.
            ({time.CLOCK_REALTIME: 10**10, time.CLOCK_BOOTTIME: 10**10}, (0, 10**10)),
        ],
    )
    def test_stepped_clocks_are_invalid(
        self, moved: dict[int, int], found: tuple[int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before, now = MachineClocks.read(), time.clock_gettime_ns
        monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: now(clock) + moved.get(clock, 0))
        clock = before.changes_until_now()
        assert abs(clock.stepped_ns - found[0]) < CLOCK_STEP_NS and abs(clock.asleep_ns - found[1]) < CLOCK_STEP_NS
        assert len(clock.reasons()) == 1


class TestHosts:
    @staticmethod
    def stall(**message: Any) -> StallRecord:
        return StallRecord(**{"watched_ns": 10**10, "wakes": 950, "late": 3, "behind_ns": 0, "latest_ns": 0, **message})

    def test_overloaded_host_is_reported(self) -> None:
        assert self.stall(behind_ns=10**8).lateness("client") == ()
        assert len(self.stall(behind_ns=10**8).warnings("client")) == 1
        late = self.stall(behind_ns=10**8 + 1, latest_ns=40_000_000)
        (reason,) = late.lateness("client")
        assert late.is_late and late.warnings("client") == ()
        assert reason.startswith("client: its programs got no CPU time for 1.00% of the traffic time")
        assert "3 of 950 wake-ups were more than 5 ms late, at most 40 ms, at most 1% is acceptable" in reason
        (warning,) = self.stall(waited_ns={"iperf3": 6 * 10**8, "dumpcap": 10**8}).warnings("client")
        assert warning == "client: iperf3 waited for a processor during 6% of the traffic time"

    def test_set_or_uncertain_clock_is_reported(self) -> None:
        def clock(error_ns: int = 0, stepped_ns: int = 0) -> HostClockRecord:
            own = ClockRecord(stepped_ns=stepped_ns, asleep_ns=0)
            return HostClockRecord(looked_ns=(0, 10**10), ahead_ns=(0, 10**6), error_ns=(0, error_ns), own=own)

        assert clock().reasons("client") == clock().warnings("client") == ()
        (reason,) = clock(stepped_ns=2 * 10**6).reasons("client")
        assert reason == "client's clock was stepped by +2 ms during the cell"
        (warning,) = clock(error_ns=7 * 10**6).warnings("client")
        assert "client: its clock is known to ±7 ms: graphs" in warning

    def test_clock_readings_become_a_record(self) -> None:
        class Host:
            def __init__(self, *looks: ClockReading | None) -> None:
                self._looks = list(looks)

            def read_clock(self) -> ClockReading | None:
                return self._looks.pop(0)

        class Hosts:
            hosts: ClassVar = {
                "near": Host(None),
                "far": Host(ClockReading(100, 7, 1, 50, 60), ClockReading(1100, 9, 2, 53 + 4, 60 + 4)),
            }

            def host(self, name: str) -> Host:
                return self.hosts[name]  # type: ignore[no-any-return]

        found = HostClocks(Hosts(), ["near", "far"]).changes_until_now()  # type: ignore[arg-type]
        assert set(found) == {"far"}
        clock = found["far"]
        assert (clock.looked_ns, clock.ahead_ns, clock.error_ns) == ((100, 1100), (7, 9), (1, 2))
        assert (clock.own.stepped_ns, clock.own.asleep_ns) == (3, 4)

    @pytest.mark.parametrize("drift_ppm", [0, 50, -50])
    def test_stamps_of_a_wrong_clock_are_corrected(self, drift_ppm: int) -> None:
        start = 1_700_000_000 * 10**9

        def there(ours: int) -> int:
            return ours + 3_700_000_000 + (ours - start) * drift_ppm // 10**6

        looks = (start + 10**9, start + 31 * 10**9)
        ahead = tuple(there(each) - each for each in looks)
        own = ClockRecord(stepped_ns=0, asleep_ns=0)
        clock = HostClockRecord(looked_ns=looks, ahead_ns=(ahead[0], ahead[1]), error_ns=(0, 0), own=own)
        true = np.arange(start, start + 40 * 10**9, 10**8)
        stamped = np.array([there(int(each)) for each in true])
        packets = pa.RecordBatch.from_pydict({"bytes": pa.array(np.arange(len(true))), "time_ns": pa.array(stamped)})
        (found,) = shift_clock([packets], clock)
        assert np.abs(column_array(found, "time_ns") - true).max() <= 1000
        assert (column_array(found, "bytes") == np.arange(len(true))).all()
        (same,) = shift_clock([packets], None)
        assert (column_array(same, "time_ns") == stamped).all()
