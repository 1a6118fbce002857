"""Counters read with show commands: reading times, use, and error of a value from them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from analysis_tables import columns
from hypothesis import given, settings
from hypothesis import strategies as st

from levels import example_count
from qoslab.analysis.at_instant import APART_S
from qoslab.analysis.class_lines import Line
from qoslab.analysis.class_metrics import EachClass, class_values
from qoslab.analysis.estimates import Estimate, estimate_error, passed_bytes
from qoslab.analysis.missing import Missing
from qoslab.analysis.raw import Row
from qoslab.analysis.show_readings import instants, last_common_time_ns, reading_rows, unwrap_counters
from qoslab.errors import DeviceError
from qoslab.genie import mls_qos
from qoslab.genie.queueing import parse_queue
from qoslab.genie.show_parser import parse
from qoslab.model.experiment import Topology
from qoslab.model.instants import MeasurementDemand, measurement_demand, traffic_time
from qoslab.model.metrics import ClassSelector
from qoslab.model.units import Duration
from qoslab.results import Cell, tables
from qoslab.run.cell.periodic_show import LOAD, ShowSampler, reading_commands, reading_interval_s, reading_times
from qoslab.run.devices.collector import RouterAnswer
from qoslab.schema import CellIdentity, load_sweep

TOP = Path(__file__).parents[2]
TRAFFIC_S = 9.0
CELL = {"arm": "a", "repetition": 1, "cell": "a/1"}
SECOND = 10**9


def topology(experiment: str) -> Topology:
    return load_sweep(TOP / f"experiments/{experiment}.yml", {}).experiment.topology


class TestReadingTimes:
    @given(st.floats(1, 600), st.floats(0.5, 60))
    def test_readings_cover_both_ends_of_the_window(self, length: float, every: float) -> None:
        times = reading_times(length, every)
        assert times[-1] == pytest.approx(length) and all(0 < each <= length * 1.0001 for each in times)
        assert any(each == pytest.approx(length / 3) for each in times)
        apart = [after - before for before, after in zip([0.0, *times], times, strict=False)]
        assert max(apart) <= every * 1.0001 and min(apart) > 0

    def test_expected_trigger_has_a_reading_on_each_side(self) -> None:
        experiment = load_sweep(TOP / "experiments/policing-vs-shaping.yml", {}).experiment
        demands = {arm.name: measurement_demand(experiment, arm.name) for arm in experiment.arms}
        assert demands["shaped"] == MeasurementDemand(times_s=(5.7,)) and demands["policed"] == MeasurementDemand(
            needs_counter_triggers=True
        )
        assert reading_times(30.0, 10.0, [6.0]) == [5.5, 6.5, 10.0, 20.0, 30.0]
        # A reading that is close enough is not taken twice, and none is due before or after the traffic.
        assert reading_times(30.0, 10.0, [10.0, 9.4, 0.3, 29.8, 40.0]) == [0.8, 8.9, 9.5, 10.0, 10.5, 20.0, 29.3, 30.0]
        assert reading_times(9.0, 3.0, [3.4, 6.0]) == [3.0, 3.9, 5.5, 6.0, 6.5, 9.0]

    def test_readings_continue_until_the_flows_end(self) -> None:
        assert reading_times(30.0, 10.0, [50.0], 60.0) == [10.0, 20.0, 30.0, 40.0, 49.5, 50.0, 50.5]
        assert reading_times(30.0, 10.0, (), 60.5) == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
        assert reading_times(30.0, 10.0, (), 12.0) == reading_times(30.0, 10.0)
        experiment = load_sweep(TOP / "experiments/hqf-fair-queue.yml", {}).experiment
        arm = experiment.arm("load")
        length_s, traffic_s = experiment.duration.seconds, traffic_time(experiment, arm).seconds
        times = reading_times(length_s, 10.0, measurement_demand(experiment, "load").times_s, traffic_s)
        assert traffic_s == 2 * length_s and [each for each in times if 110 < each < 120] == [114.5, 115.5]

    @given(st.floats(1, 600), st.floats(0.5, 60), st.lists(st.floats(0.1, 600), max_size=4))
    def test_triggers_only_add_readings(self, length: float, every: float, moments: list[float]) -> None:
        times = reading_times(length, every, moments)
        assert set(reading_times(length, every)) <= set(times) and times == sorted(times)
        for moment in moments:
            if 1 < moment < length - 1:
                apart = [
                    after - before
                    for before, after in zip([0.0, *times], times, strict=False)
                    if before <= moment <= after
                ]
                assert apart and max(apart) < APART_S - 1

    def test_counter_trigger_is_between_near_readings(self) -> None:
        """Place a counter trigger between readings: its time is unknown beforehand.

        The inventory's interval is used first, since reading costs the router time.
        """
        often, seldom = MeasurementDemand(needs_counter_triggers=True), MeasurementDemand(times_s=(5.7,))
        assert reading_interval_s(None, seldom) == 10 and 0 < reading_interval_s(None, often) < APART_S - 0.4
        for stated in ("0 s", "1 s", "30 s"):
            assert {reading_interval_s(Duration.parse(stated), each) for each in (often, seldom)} == {
                float(stated[:-2])
            }

    def test_no_reading_is_planned_during_traffic(self) -> None:
        assert reading_times(30.0, 0.0) == reading_times(30.0, 0.0, [6.0]) == []

    def test_conversations_of_a_router_are_read(self) -> None:
        ports = ("FastEthernet0/0", "Serial0/1/0")
        assert reading_commands(topology("wfq-precedence"), "a1") == (
            "show policy-map interface",
            *(f"show interfaces {port}" for port in ports),
            *(f"show queue {port}" for port in ports),
            LOAD,
        )

    def test_queues_of_a_switch_are_read(self) -> None:
        ports = ("GigabitEthernet1/0/1", "GigabitEthernet1/0/15")
        assert reading_commands(topology("srr-3750"), "SW") == (
            "show policy-map interface",
            *(f"show interfaces {port}" for port in ports),
            *(f"show mls qos interface {port} statistics" for port in ports),
            *(f"show platform port-asic stats drop {port}" for port in ports),
            LOAD,
        )


class SilentRouter:
    """Router that answers show commands and refuses some."""

    def __init__(self, answers: Mapping[str, str], *, fails_after: int = 1000) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self._fails_after = fails_after

    def show(self, device: str, command: str) -> RouterAnswer:
        if len(self.asked) >= self._fails_after:
            raise DeviceError(f"{device} has hung up")
        self.asked.append(command)
        raw = self.answers.get(command)
        at = len(self.asked) * SECOND
        if raw is None:
            return RouterAnswer("% Invalid input", None, "the router refused the command: % Invalid input", at, at + 10)
        return RouterAnswer(raw, None, "", at, at + SECOND // 50)

    def parse(self, device: str, command: str, text: str) -> RouterAnswer:
        return RouterAnswer(
            text, {"said": text} if text else None, "" if text else "the parser recognised nothing in it"
        )


class TestSampler:
    @staticmethod
    def sampler(router: SilentRouter, folder: Path) -> ShowSampler:
        cell = Cell(folder, CellIdentity("a", (), 1))
        every = {"R1": Duration.parse("10 s")}
        return ShowSampler(
            router,
            topology("policing-vs-shaping"),
            every,
            cell,
            MeasurementDemand(),
            length_s=TRAFFIC_S,
            traffic_s=TRAFFIC_S,
        )

    def test_unanswered_command_is_not_repeated(self, tmp_path: Path) -> None:
        busy = "CPU utilization for five seconds: 12%/3%; one minute: 5%; five minutes: 4%\n"
        interface = "show interfaces FastEthernet0/1"
        router = SilentRouter({interface: "counters", "show policy-map interface": "", LOAD: busy})
        with self.sampler(router, tmp_path) as sampler:
            sampler.ready()
            assert len(router.asked) == 6
            sampler.start(time.monotonic())
        (record,) = sampler.save_readings().values()
        assert router.asked[6:] == [interface, LOAD]
        assert record.commands == (interface, LOAD) and record.readings == 2 and record.busy_max_percent == 12
        kept = list(Cell(tmp_path, CellIdentity("a", (), 1)).files().readings("R1"))
        assert [each["command"] for each in kept] == [interface, interface]
        assert kept[0]["parsed"] == {"said": "counters"} and kept[0]["after_ns"] - kept[0]["before_ns"] == SECOND // 50

    def test_disconnecting_router_ends_the_readings_and_is_reported(self, tmp_path: Path) -> None:
        router = SilentRouter({"show interfaces FastEthernet0/1": "counters"}, fails_after=6)
        with self.sampler(router, tmp_path) as sampler:
            sampler.ready()
        sampler.save_readings()
        assert sampler.error is not None and "R1 has hung up" in str(sampler.error)

    def test_no_reading_follows_a_failed_first_one(self, tmp_path: Path) -> None:
        router = SilentRouter({"show interfaces FastEthernet0/1": "counters"}, fails_after=3)
        sampler = self.sampler(router, tmp_path)
        with pytest.raises(DeviceError, match="R1 has hung up"), sampler:
            sampler.ready()
        kept = list(Cell(tmp_path, CellIdentity("a", (), 1)).files().readings("R1"))
        assert [each["command"] for each in kept] == ["show interfaces FastEthernet0/1"]


def reading(
    command: str, parsed: Mapping[str, Any], at_s: float, raw: str = "", took_s: float = 0.02
) -> dict[str, Any]:
    before = round((at_s - took_s / 2) * SECOND)
    return {
        "command": command,
        "before_ns": before,
        "after_ns": before + round(took_s * SECOND),
        "raw": raw,
        "parsed": parsed,
    }


def of_interface(at_s: float, octets: int, **queues: Any) -> dict[str, Any]:
    parsed = {"FastEthernet0/1": {"counters": {"out_octets": octets, "out_pkts": 5}, "queues": queues}}
    raw = (
        "  Output queue: 3/1000/64/9 (size/max total/threshold/drops) \n     Conversations  1/2/256 (active/max active"
    )
    return reading("show interfaces FastEthernet0/1", parsed, at_s, raw)


def unowned_rows(_: Mapping[str, Any]) -> None:
    """Return the owner of a packet: none."""


SERIAL = """Serial0/1/0 is up, line protocol is up
  Hardware is GT96K Serial
  Internet address is 10.0.1.1/30
  MTU 1500 bytes, BW 2000 Kbit, DLY 20000 usec,
     reliability 255/255, txload 1/255, rxload 1/255
  Encapsulation HDLC, loopback not set
  Keepalive set (10 sec)
  Last input 00:00:02, output 00:00:01, output hang never
  Last clearing of "show interface" counters never
  Input queue: 1/75/21/0 (size/max/drops/flushes); Total output drops: 33
  Queueing strategy: weighted fair
  Output queue: 3/1000/64/9 (size/max total/threshold/drops)
     Conversations  4/5/256 (active/max active/max total)
     Reserved Conversations 0/0 (allocated/max allocated)
     Available Bandwidth 1500 kilobits/sec
  30 second input rate 41000 bits/sec, 42 packets/sec
  30 second output rate 43000 bits/sec, 44 packets/sec
     51 packets input, 5200 bytes, 0 no buffer
     Received 0 broadcasts, 0 runts, 0 giants, 0 throttles
     0 input errors, 0 CRC, 0 frame, 0 overrun, 0 ignored, 0 abort
     53 packets output, 5400 bytes, 0 underruns
     0 output errors, 0 collisions, 1 interface resets
     0 output buffer failures, 0 output buffers swapped out
     0 carrier transitions
"""


class TestRows:
    @pytest.mark.parametrize(
        ("message", "strategy"),
        [
            ("weighted fair", "weighted_fair"),
            ("fifo", "fifo"),
            ("Class-based queueing", "class_based"),
            ("priority-list 1", "priority"),
            ("custom-list 3", "custom"),
            ("something new", None),
        ],
    )
    def test_every_value_of_show_interfaces_is_read(self, message: str, strategy: str | None) -> None:
        text = SERIAL.replace("weighted fair", message)
        parsed = parse("ios", "show interfaces Serial0/1/0", text).parsed
        assert parsed is not None
        # There is no line for another interface.
        parsed["Serial0/1/1"] = parsed["Serial0/1/0"]
        command = reading("show interfaces Serial0/1/0", _plain_rows(parsed), 2.0, text)
        unread = reading("show policy-map interface", {"unparsed": "it says nothing"}, 1.0)
        ((table, row),) = reading_rows("a1", [unread, command], SECOND, {}, unowned_rows)
        known = {name: value for name, value in row.items() if not name.startswith("time")}
        assert table == "interfaces" and known == {
            "device": "a1",
            "interface": "Serial0/1/0",
            "enabled": True,
            "load_interval_s": 30,
            "input_packets": 51,
            "input_bytes": 5200,
            "input_rate_bps": 41000,
            "input_rate_pps": 42,
            "input_drops": 21,
            "output_packets": 53,
            "output_bytes": 5400,
            "output_rate_bps": 43000,
            "output_rate_pps": 44,
            "output_drops": 33,
            "queue_strategy": strategy,
            "queue_depth": 3,
            "queue_limit": 1000,
            "queue_drops": 9,
            "queue_threshold": 64,
            "queue_conversations": 4,
            "queue_max_active_conversations": 5,
            "queue_max_conversations": 256,
            "queue_available_bandwidth_kbps": 1500,
        }

    def test_genie_parses_output_unknown_to_the_qoslab_parser(self) -> None:
        parsed = {"Serial0/1/0": {"queues": {"queue_strategy": "fifo"}}}
        ((_, row),) = reading_rows(
            "a1", [reading("show interfaces Serial0/1/0", parsed, 2.0)], SECOND, {}, unowned_rows
        )
        assert row["queue_strategy"] == "fifo"
        assert instants(1, 2 * SECOND + 1, 1) == {"time_s": 1.0, "time_error_s": 1.0}

    def test_values_missing_from_the_output_are_missing(self) -> None:
        command = reading("show interfaces Serial0/1/0", {"Serial0/1/0": {}}, 2.0)
        ((_, row),) = reading_rows("a1", [command], SECOND, {}, unowned_rows)
        assert {name: value for name, value in row.items() if value is not None}.keys() == {
            "device",
            "interface",
            "time_s",
            "time_error_s",
        }

    def test_class_rows_have_device_and_time(self) -> None:
        policy = {"service_policy": {"output": {"policy_name": {"P": {"class_map": {"A": {"packets": 7}}}}}}}
        lines = {("R1", "Serial0/0"): Line(2e6, 3, 14)}
        readings = [reading("show policy-map interface", {"Serial0/0": policy}, at_s) for at_s in (1.0, 2.0)]
        rows = [
            (table, row["device"], row["time_s"]) for table, row in reading_rows("R1", readings, 0, lines, unowned_rows)
        ]
        assert rows == [("classes", "R1", pytest.approx(1.0)), ("classes", "R1", pytest.approx(2.0))]

    def test_time_of_the_last_reading_is_known(self) -> None:
        policy, interface = "show policy-map interface", "show interfaces Serial0/0"
        statistics = "show mls qos interface GigabitEthernet1/0/15 statistics"
        read = [reading(each, {}, at_s) for each, at_s in ((policy, 3.0), (interface, 2.0), (statistics, 4.0))]
        assert last_common_time_ns(read) == 2 * SECOND
        assert last_common_time_ns([*read, reading(interface, {}, 5.0)]) == 3 * SECOND
        # In any order of storage; other interfaces count nothing.
        others = [reading(each, {}, 1.0) for each in (LOAD, "show queue Serial0/0", "show interfaces")]
        assert last_common_time_ns([reading(interface, {}, 5.0), *read, *others]) == 3 * SECOND
        assert last_common_time_ns([reading(policy, {}, 6.0), *read[1:], reading(interface, {}, 7.0)]) == 4 * SECOND
        # An unreadable value was not read.
        assert last_common_time_ns([*read, reading(policy, {"unparsed": "why"}, 9.0)]) == 2 * SECOND
        assert last_common_time_ns([reading(policy, {"unparsed": "why"}, 9.0), *read[1:]]) == 0
        assert last_common_time_ns([]) == last_common_time_ns(others) == 0
        between = reading(policy, {}, 1.0) | {"before_ns": 3, "after_ns": 6}
        assert last_common_time_ns([between]) == 4

    def test_empty_output_has_no_rows(self) -> None:
        statistics = "show mls qos interface GigabitEthernet1/0/15 statistics"
        prints = [
            (statistics, {}),
            (statistics, {"interface": {}}),
            (statistics, {"interface": {"GigabitEthernet1/0/15": {}}}),
            ("show platform port-asic stats drop GigabitEthernet1/0/15", {}),
            ("show queue Serial0/0", {"Serial0/0": {}}),
        ]
        assert list(reading_rows("SW", [reading(*each, 1.0) for each in prints], 0, {}, unowned_rows)) == []

    def test_interface_rows_follow_from_two_readings(self) -> None:
        ((table, row),) = reading_rows("R1", [of_interface(5.0, 700, total_output_drop=12)], SECOND, {}, unowned_rows)
        assert table == "interfaces"
        assert row["time_s"] == pytest.approx(4.0) and row["time_error_s"] == pytest.approx(0.01)
        assert (row["output_bytes"], row["output_drops"], row["queue_drops"], row["queue_threshold"]) == (
            700,
            12,
            9,
            64,
        )
        assert row["queue_max_active_conversations"] == 2
        # A value that is not printed is missing.
        assert row["input_packets"] is None and "line_rate_bps" not in row

    @pytest.mark.parametrize(
        ("then", "now", "continued"),
        [
            # 100 Mb/s carry 12.5 MB a second.
            (2**32 - 1_000_000, 11_000_000, 2**32 + 11_000_000),
            (2**32 - 1_000_000, 14_000_000, 14_000_000),
            # Exact to the byte, plus 10,000 for the uncertainty of the instants.
            (2**32 - 10_000, 12_500_000, 2**32 + 12_500_000),
            (2**32 - 10_000, 12_500_001, 12_500_001),
            # A 64-bit counter that somebody cleared.
            (2**32, 100, 100),
            (4_000_000, 100, 100),
            (2**40, 100, 100),
        ],
    )
    def test_restarted_counter_continues_within_the_capacity_of_the_line(
        self, then: int, now: int, continued: int
    ) -> None:
        lines = {("R1", "FastEthernet0/1"): Line(1e8, 24)}
        rows = reading_rows(
            "R1", [of_interface(1.0, then), of_interface(2.0, now), of_interface(3.0, now)], 0, lines, unowned_rows
        )
        assert [row["output_bytes"] for _, row in rows] == [then, continued, continued]

    def test_each_counter_continues_after_each_restart(self) -> None:
        def row(interface: str, time_s: float, came: int, left: int | None) -> Row:
            counts = {"input_packets": None, "input_bytes": came, "output_packets": None, "output_bytes": left}
            return {"device": "R1", "interface": interface, "time_s": time_s, **counts}

        lines = {("R1", "A"): Line(1e11, 24)}
        rows = [row("A", 1.0, 4_000_000_000, 7), row("B", 1.0, 5, 2**32 - 1), row("A", 2.0, 100, 8)]
        rows += [row("B", 2.0, 6, 0), row("A", 3.0, 4_200_000_000, None), row("A", 4.0, 100, 9)]
        found = [
            (each["interface"], each["input_bytes"], each["output_bytes"]) for each in unwrap_counters(rows, lines)
        ]
        assert found == [
            ("A", 4_000_000_000, 7),
            ("B", 5, 2**32 - 1),
            ("A", 2**32 + 100, 8),
            # The capacity of its line is unknown.
            ("B", 6, 0),
            ("A", 2**32 + 4_200_000_000, None),
            ("A", 2**33 + 100, 9),
        ]

    def test_policies_of_other_ports_give_no_rows(self) -> None:
        policy = {"service_policy": {"output": {"policy_name": {"P": {"class_map": {"A": {"packets": 7}}}}}}}
        parsed = dict.fromkeys(("Serial0/0.5", "own-Serial0/0", "Serial0/1", "Vlan7"), policy)
        lines = {("R1", "Serial0/0"): Line(2e6, 3, 14), ("R2", "Serial0/1"): Line(2e6, 3, 14)}
        rows = reading_rows("R1", [reading("show policy-map interface", parsed, 1.0)], 0, lines, unowned_rows)
        assert [row["interface"] for _, row in rows] == ["Serial0/0.5", "Vlan7"]

    def test_conversation_rows_follow_from_two_readings(self) -> None:
        # Two packets as in the author's output, the addresses of others, and one that is not IP.
        text = """  Output queue: 64/1000/64/12799 (size/max total/threshold/drops)

  (depth/weight/total drops/no-buffer drops/interleaves) 57/32384/12799/0/0
  Conversation 10, linktype: ip, length: 260
  source: 10.0.0.10, destination: 10.0.20.10, id: 0x0A0B, ttl: 127,
  TOS: 0 prot: 17, source port 1500, destination port 5002

  (depth/weight/total drops/no-buffer drops/interleaves) 7/5397/0/0/0
  Conversation 23, linktype: ip, length: 1304
  source: 10.0.0.10, destination: 10.0.20.10, id: 0x0A0C, ttl: 127,
  TOS: 160 prot: 6, source port 1501, destination port 5002

  (depth/weight/total drops/no-buffer drops/interleaves) 1/1024/0/0/0
  Conversation 265, linktype: other, length: 24
"""
        parsed = _plain_rows(parse_queue(text, "Serial0/1/0"))
        known = {(17, "10.0.20.10", 5002): "flood", (6, "10.0.20.10", 5002): "session"}
        rows = reading_rows(
            "a1",
            [reading("show queue Serial0/1/0", parsed, 3.0, text)],
            SECOND,
            {},
            lambda ip: known.get((ip.get("protocol"), ip.get("destination"), ip.get("destination_port"))),
        )
        found = [row for table, row in rows if table == "conversations"]
        assert [(each["conversation"], each["traffic"]) for each in found] == [
            (10, "flood"),
            (23, "session"),
            (265, None),
        ]
        assert [(each["depth_packets"], each["weight"], each["drops"]) for each in found] == [
            (57, 32384, 12799),
            (7, 5397, 0),
            (1, 1024, 0),
        ]
        assert {(each["device"], each["interface"], each["time_s"]) for each in found} == {("a1", "Serial0/1/0", 2.0)}

    def test_switch_rows_follow_from_two_readings(self) -> None:
        statistics = """GigabitEthernet1/0/15 (All statistics are in packets)
  output queues enqueued:
 queue:    threshold1   threshold2   threshold3
-----------------------------------------------
 queue 0:        5532           0           0
 queue 1:      363673           1           2
"""
        dropped = statistics.replace("enqueued", "dropped").partition("\n")[2].replace("363673", "276")
        asic = "Interface Gi1/0/15 TxQueue Drop Statistics\n Queue 1\n  Weight 0 Frames 276\n"
        command = "show mls qos interface GigabitEthernet1/0/15 statistics"
        on_asic = "show platform port-asic stats drop GigabitEthernet1/0/15"

        def rows(text: str) -> list[dict[str, object]]:
            answer = {
                command: _plain_rows(mls_qos.parse_statistics(text)),
                on_asic: _plain_rows(mls_qos.parse_port_asic_drops(asic)),
            }
            found = reading_rows("SW", [reading(name, each, 1.0) for name, each in answer.items()], 0, {}, unowned_rows)
            return [row for table, row in found if table == "queues"]

        both = {
            (row["queue"], row["threshold"]): (row["enqueued"], row["dropped"]) for row in rows(statistics + dropped)
        }
        assert both[2, 1] == (363673, 276) and both[1, 1] == (5532, 5532) and both[2, 3] == (2, 2)
        assert len(both) == 6
        port = {"GigabitEthernet1/0/15"}
        assert {row["interface"] for row in rows(statistics + dropped)} == port
        # If the statistics have no drops, those of the ASIC count.
        apart = rows(statistics)
        assert {row["interface"] for row in apart} == port
        assert {
            (row["queue"], row["threshold"], row["dropped"]) for row in apart if row.get("dropped") is not None
        } == {(2, 1, 276)}


def _plain_rows(value: Any) -> Any:
    """Return the value in its JSON form."""
    return {str(name): _plain_rows(item) for name, item in value.items()} if isinstance(value, dict) else value


@settings(max_examples=example_count(200))
@given(st.lists(st.tuples(st.integers(34, 1514), st.booleans()), min_size=1, max_size=60))
def test_passed_bytes_are_within_their_bound(sent: list[tuple[int, bool]]) -> None:
    sizes = [size for size, _ in sent]
    passed = [size for size, went in sent if went]
    found = passed_bytes(len(sizes), sum(sizes), len(passed), 14)
    assert abs(found - sum(passed)) <= found.error + 1e-6


class TestEstimates:
    def test_full_packets_have_a_tight_bound(self) -> None:
        found = passed_bytes(30_000, 30_000 * 1513, 10_000, 14)
        assert found == pytest.approx(10_000 * 1513) and found.error < 0.003 * found

    @staticmethod
    def values(size: int, took_s: float = 0.02) -> dict[str, float | Missing]:
        """Return the values of a class with 10 of 40 packets a second dropped and drops printed in packets only."""
        lines, rows = {("R1", "Serial0/0"): Line(2e6, 3, 14)}, []
        for at_s, count in ((3.0, 120), (6.0, 240), (9.0, 360)):
            entry = {
                "packets": count,
                "bytes": count * size,
                "bandwidth_kbps": 400,
                "queue_depth": 0,
                "total_drops": count // 4,
            }
            policy = {"policy_name": {"P": {"class_map": {"A": entry}}}}
            parsed = {"Serial0/0": {"service_policy": {"output": policy}}}
            rows += [
                row
                for _, row in reading_rows(
                    "R1", [reading("show policy-map interface", parsed, at_s, "", took_s)], 0, lines, unowned_rows
                )
            ]
        table = tables.frame("classes", [CELL | row for row in rows])
        return dict(class_values(EachClass(columns(table), TRAFFIC_S, lines), ClassSelector("A")))

    def test_bytes_that_are_not_printed_are_estimated_with_their_bound(self) -> None:
        found = self.values(1500)
        passed, dropped = found["class.passed"], found["class.dropped"]
        assert passed == pytest.approx(30 * 1500 * 8) and dropped == pytest.approx(10 * 1500 * 8)
        assert isinstance(passed, Estimate) and 0 < estimate_error(passed) < 0.02 * passed
        assert found["class.line_share"] == pytest.approx(30 * 1503 * 8 / 2e6)

    def test_value_with_a_loose_bound_is_missing(self) -> None:
        found = self.values(700)
        assert found["class.offered"] == pytest.approx(40 * 700 * 8)
        assert isinstance(found["class.passed"], Missing)
        assert "R1 Serial0/0 output A: the readings only show a value between" in found["class.passed"]

    def test_slow_readings_make_a_rate_uncertain(self) -> None:
        assert estimate_error(self.values(1500, 0.1)["class.offered"]) > estimate_error(
            self.values(1500)["class.offered"]
        )  # type: ignore[arg-type]
        assert isinstance(self.values(1500, 0.6)["class.offered"], Missing)
