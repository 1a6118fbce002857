"""IP SLA on the command line: configuration, output, parsers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levels import example_count
from qoslab.genie.ip_sla import parse_statistics
from qoslab.genie.show_parser import parse
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.compile import compile_device
from qoslab.ios.config import ConfigSession
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.model.ip_sla import IpSla, Operation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from qoslab.ios.show.ip_sla import show_aggregated, show_configuration, show_responder, show_statistics, show_summary
from rollback_lines import undo_lines

HARDWARE = Hardware("2811", ("FastEthernet0/0", "Serial0/1/0"))
ARTICLE = """\
ip sla 50000
 icmp-jitter 172.16.1.130
 timeout 1000
 threshold 500
 frequency 2
 history hours-of-statistics-kept 1
 history distributions-of-statistics-kept 2
"""

PRINTED_2008 = """\
Round Trip Time (RTT) for       Index 50000
Start Time Index: 13:15:22.851 UTC Fri Apr 18 2008
Type of operation: icmpJitter
RTT Values:
        Number Of RTT: 387              RTT Min/Avg/Max: 6/15/31
Latency one-way time:
        Number of Latency one-way Samples: 0
        Source to Destination Latency one way Min/Avg/Max: 0/0/0
        Destination to Source Latency one way Min/Avg/Max: 0/0/0
Jitter Time:
        Number of Jitter Samples: 334
        Source to Destination Jitter Min/Avg/Max: 1/6/23
        Destination to Source Jitter Min/Avg/Max: 1/1/1
"""
PRINTED_LATER = """\
IPSLAs Latest Operation Statistics

IPSLA operation id: 50000
Type of operation: icmp-jitter
        Latest RTT: 17 milliseconds
Latest operation start time: 13:54:02 UTC Tue Nov 14 2017
Latest operation return code: OK
RTT Values:
        Number Of RTT: 10               RTT Min/Avg/Max: 8/17/28 milliseconds
Latency one-way time:
        Number of Latency one-way Samples: 0
        Source to Destination Latency one way Min/Avg/Max: 0/0/0 milliseconds
        Destination to Source Latency one way Min/Avg/Max: 0/0/0 milliseconds
Jitter Time:
        Number of SD Jitter Samples: 9
        Number of DS Jitter Samples: 9
        Source to Destination Jitter Min/Avg/Max: 0/9/17 milliseconds
        Destination to Source Jitter Min/Avg/Max: 0/12/19 milliseconds
Over Threshold:
        Number Of RTT Over Threshold: 0 (0%)
Packet Late Arrival: 0
Out Of Sequence: 0
        Source to Destination: 0        Destination to Source 0
        In both Directions: 0
Packet Skipped: 0       Packet Unprocessed: 0
Packet Loss: 0
        Loss Period Length Min/Max: 0/0
Number of successes: 7
Number of failures: 0
Operation time to live: Forever
"""


def _summary(count: int, total: int, least: int, greatest: int) -> dict[str, int]:
    return {"count": count, "sum": total, "sum2": 0, "min": least, "max": greatest}


NONE = _summary(0, 0, 0, 0)
LOSSES = dict.fromkeys(
    (
        "total",
        "source_to_destination",
        "destination_to_source",
        "missing",
        "late",
        "skipped",
        "out_of_sequence_sd",
        "out_of_sequence_ds",
        "out_of_sequence_both",
        "period_min",
        "period_max",
    ),
    0,
)


def _statistics(rtt: dict[str, int], sd: dict[str, Any], ds: dict[str, Any]) -> dict[str, Any]:
    return {
        "sent": rtt["count"],
        "rtt": rtt,
        "over_threshold": 0,
        "jitter_sd": sd,
        "jitter_ds": ds,
        "one_way_sd": NONE,
        "one_way_ds": NONE,
        "losses": LOSSES,
    }


def _sla_device() -> IpSla:
    device = Device(HARDWARE)
    apply_config(device, ARTICLE, source="article")
    return device.ip_sla


def _refusal(session: ConfigSession, line: str) -> str:
    with pytest.raises(CliError) as caught:
        session.execute(line)
    return caught.value.message


def test_configuration_of_the_article_is_accepted_and_printed() -> None:
    device = Device(HARDWARE)
    before = render(device)
    apply_config(
        device, ARTICLE + "ip sla schedule 50000 start-time now life forever\nip sla responder\n", source="article"
    )
    text = render(device)
    assert ARTICLE + "ip sla schedule 50000 life forever start-time now\n" in text
    assert parse_config(text, HARDWARE, source="itself") == device
    undo = undo_lines(before, text, HARDWARE)
    apply_config(device, "\n".join(undo), source="undo")
    assert render(device) == before
    assert "ip_sla" not in compile_device(device)


def test_data_plane_gets_every_setting() -> None:
    device = Device(HARDWARE)
    apply_config(
        device,
        "interface FastEthernet0/0\n ip address 10.0.0.5 255.255.255.0\nip sla 7\n"
        " icmp-echo 10.0.0.1 source-interface FastEthernet0/0\n request-data-size 100\n tos 184\n"
        "ip sla schedule 7 start-time 10:20:05 nov 3 recurring ageout 90 life 60\n"
        "ip sla 8\n udp-jitter 10.0.0.1 5000 source-port 4000 control disable num-packets 20 interval 30\n",
        source="test",
    )
    operations = compile_device(device)["ip_sla"]["operations"]
    assert operations["7"]["source"] == "10.0.0.5"
    assert operations["7"]["schedule"] == {
        "life_s": 60,
        "ageout_s": 90,
        "recurring": True,
        "start": {"at": {"hour": 10, "minute": 20, "second": 5, "date": [11, 3]}},
    }
    assert (operations["8"]["control"], operations["8"]["packets"], operations["8"]["interval_ms"]) == (False, 20, 30)
    assert operations["8"]["schedule"] is None


def test_responder_answers_reachable_senders() -> None:
    device = Device(HARDWARE)
    apply_config(
        device,
        "interface FastEthernet0/0\n ip address 10.0.0.5 255.255.255.0\nip route 10.0.1.0 255.255.255.0 10.0.0.1\n"
        "ip route 192.168.7.0 255.255.255.0 10.0.0.1\nip sla responder\n",
        source="test",
    )
    assert compile_device(device)["ip_sla"]["responder_allow"] == ["10.0.0.0/23", "192.168.7.0/24"]


IPV6 = """\
ip sla 7
 icmp-echo 2001:DB8::1 source-interface FastEthernet0/0
 traffic-class 184
!
ip sla 8
 udp-jitter 2001:DB8::1 5000 source-ip 2001:DB8::5 source-port 4000 control disable num-packets 20 interval 30
!
ip sla 9
 udp-echo 2001:DB8:1::1 7
"""
LAN = "interface FastEthernet0/0\n ip address 10.0.0.5 255.255.255.0\n ipv6 address 2001:DB8::5/64\n"
HQF = Hardware("2811", ("FastEthernet0/0", "Serial0/1/0"), generation="hqf")


def test_operations_take_ipv6_from_12_4_20_t_on() -> None:
    device = Device(HQF)
    apply_config(device, LAN + "ipv6 route 2001:DB8:1::/64 2001:DB8::1\n", source="test")
    before = render(device)
    apply_config(device, IPV6 + "ip sla responder\n", source="test")
    text = render(device)
    assert IPV6 in text
    assert parse_config(text, HQF, source="itself") == device
    compiled = compile_device(device)["ip_sla"]
    assert compiled["responder_allow"] == ["10.0.0.0/24", "2001:db8::/64", "2001:db8:1::/64"]
    found = [(each["type"], each["target"], each["source"]) for each in compiled["operations"].values()]
    assert found == [
        # Of the interface's addresses, the one of the target's family.
        ("icmp-echo", "2001:db8::1", "2001:db8::5"),
        ("udp-jitter", "2001:db8::1", "2001:db8::5"),
        ("udp-echo", "2001:db8:1::1", None),
    ]
    assert compiled["operations"]["7"]["tos"] == 184
    undo = undo_lines(before, text, HQF)
    apply_config(device, "\n".join(undo), source="undo")
    assert render(device) == before
    classic = ConfigSession(Device(HARDWARE))
    classic.execute("ip sla 7")
    assert "Invalid input" in _refusal(classic, "icmp-echo 2001:DB8::1")


def test_option_of_one_ip_version_is_refused_with_the_other() -> None:
    session = ConfigSession(Device(HQF))
    session.execute("ip sla 1")
    assert "Invalid input" in _refusal(session, "icmp-jitter 2001:DB8::1")
    assert "Invalid input" in _refusal(session, "icmp-echo 2001:DB8::1 source-ip 10.0.0.1")
    assert "link-local" in _refusal(session, "icmp-echo FE80::1")
    session.execute("icmp-echo 2001:DB8::1")
    assert "traffic-class for IPv6" in _refusal(session, "tos 184")
    assert "flow label" in _refusal(session, "flow-label 7")
    for line in ("exit", "ip sla 2", "icmp-echo 10.0.0.1"):
        session.execute(line)
    assert "tos for IPv4" in _refusal(session, "traffic-class 184")


def test_operation_over_ipv6_is_printed() -> None:
    device = Device(HQF)
    apply_config(device, IPV6.replace(" source-interface FastEthernet0/0", ""), source="test")
    text = show_configuration(device.ip_sla, number=7)
    for line in ("Target address: 2001:DB8::1", "Source address: ::", "Traffic-Class parameter: 0xB8"):
        assert f"{line}\n" in text
    long = "2001:DB8:1111:2222:3333:4444:5555:6666"
    apply_config(device, f"ip sla 5\n icmp-echo {long}\n", source="test")
    summary = show_summary(device.ip_sla, {"5": _latest(), "8": _latest()}, datetime.fromtimestamp(1_510_667_643, UTC))
    parsed = parse("iosxe", "show ip sla summary", summary)
    assert parsed.parsed is not None
    ids = parsed.parsed["ids"]
    assert (ids["5"]["destination"], ids["8"]["destination"]) == (long, "2001:DB8::1")
    report = {"control_messages": 1, "errors": 0, "packets": 9, "recent": [{"address": "2001:db8::1", "time_ns": 0}]}
    assert "        2001:DB8::1 [00:00:00.000 UTC Thu Jan 1 1970]\n" in show_responder(report)


def test_refused_commands_name_the_reason() -> None:
    session = ConfigSession(Device(HARDWARE))
    assert "not configured" in _refusal(session, "ip sla schedule 1 start-time now")
    session.execute("ip sla 1")
    assert "not configured" in _refusal(session, "ip sla schedule 1 start-time now")
    session.execute("icmp-jitter 10.0.0.1")
    assert "Frequency" in _refusal(session, "frequency 2")
    session.execute("timeout 1000")
    session.execute("frequency 2")
    assert "Timeout" in _refusal(session, "timeout 3000")
    assert "Invalid" in _refusal(session, "request-data-size 100")
    session.execute("ip sla schedule 1 start-time now")
    assert "already running" in _refusal(session, "ip sla 1")
    assert "Invalid" in _refusal(session, "ip sla schedule 1 start-time 25:00")


def test_output_of_2008_equals_that_of_the_article() -> None:
    hour = {
        "start_ns": 1_208_524_522_851_000_000,
        "successes": 39,
        "failures": 0,
        "statistics": _statistics(
            _summary(387, 387 * 15 + 200, 6, 31),
            {"pairs": 345, "positive": _summary(170, 1020, 1, 23), "negative": _summary(164, 984, 1, 20)},
            {"pairs": 345, "positive": _summary(3, 3, 1, 1), "negative": NONE},
        ),
    }
    found = show_aggregated(_sla_device(), {"50000": {"hours": [hour]}}, "2008", number=None)
    assert found == PRINTED_2008
    group = parse_statistics(found)["operations"]["50000"]["groups"][0]
    assert (group["rtt_ms"], group["jitter_sd_ms"]["avg"], group["jitter_samples"]) == (
        {"min": 6, "avg": 15, "max": 31},
        6,
        334,
    )


def _latest() -> dict[str, Any]:
    return {
        "state": "active",
        "time_to_live_s": None,
        "successes": 7,
        "failures": 0,
        "over_thresholds_occurred": False,
        "latest": {
            "start_ns": 1_510_667_642_000_000_000,
            "return_code": "ok",
            "rtt_ms": 17,
            "statistics": _statistics(
                _summary(10, 170, 8, 28),
                {"pairs": 9, "positive": _summary(4, 40, 2, 17), "negative": _summary(4, 41, 3, 16)},
                {"pairs": 9, "positive": _summary(4, 58, 9, 19), "negative": _summary(4, 50, 1, 19)},
            ),
        },
    }


def test_output_of_later_releases_is_printed() -> None:
    found = show_statistics(_sla_device(), {"50000": _latest()}, "later", number=50000, details=False)
    assert found == PRINTED_LATER
    parsed = parse("ios", "show ip sla statistics 50000", found).parsed
    assert parsed is not None
    assert parsed["operations"]["50000"]["groups"][0]["jitter_ds_ms"] == {"min": 0, "avg": 12, "max": 19}


def test_genie_parses_the_summary() -> None:
    now = datetime.fromtimestamp(1_510_667_643, UTC)
    parsed = parse("iosxe", "show ip sla summary", show_summary(_sla_device(), {"50000": _latest()}, now)).parsed
    assert parsed is not None
    assert parsed["ids"]["50000"]["rtt_stats"] == "RTT=17"


def test_genie_parses_the_configuration() -> None:
    sla = IpSla({1: Operation(1, "icmp-echo", target=_sla_device().operations[50000].target)})
    text = show_configuration(sla, number=None)
    assert "Request size (ARR data bytes): 28\n" in text
    assert "Frequency (seconds): 60\n" in text


def test_operation_without_schedule_has_no_results() -> None:
    text = show_statistics(_sla_device(), {}, "later", number=None, details=True)
    assert "Latest operation return code: Unknown" in text
    assert "Operational state of entry: Pending" in text


def _running_lines(lines: str) -> str:
    device = Device(HARDWARE)
    apply_config(device, lines, source="test")
    return render(device)


OPERATION = "ip sla 7\n icmp-echo 10.0.0.1\n timeout 500\n frequency 5\n"
SCHEDULED = OPERATION + "ip sla schedule 7 life forever start-time now\n"


def test_schedule_is_removed_without_its_operation() -> None:
    assert undo_lines(_running_lines(OPERATION), _running_lines(SCHEDULED), HARDWARE) == ["no ip sla schedule 7"]
    assert undo_lines(_running_lines(SCHEDULED), _running_lines(OPERATION), HARDWARE) == [
        "ip sla schedule 7 life forever start-time now"
    ]
    other = SCHEDULED.replace("life forever", "life 60")
    assert undo_lines(_running_lines(SCHEDULED), _running_lines(other), HARDWARE) == [
        "no ip sla schedule 7",
        "ip sla schedule 7 life forever start-time now",
    ]


def test_scheduled_operation_is_removed_to_be_changed() -> None:
    changed = SCHEDULED.replace("frequency 5", "frequency 9")
    lines = undo_lines(_running_lines(SCHEDULED), _running_lines(changed), HARDWARE)
    # It cannot be modified while it is scheduled, and its schedule is removed with it.
    assert lines[0] == "no ip sla 7" and lines[-1] == "ip sla schedule 7 life forever start-time now"


KINDS = ("icmp-echo 10.0.0.1", "icmp-jitter 10.0.0.1 num-packets 5", "udp-jitter 10.0.0.1 5000")
OPERATIONS = st.builds(
    lambda kind, frequency, schedule: (kind, frequency, schedule),
    st.sampled_from(KINDS),
    st.sampled_from([None, 5, 9]),
    st.sampled_from([None, "start-time now", "life 60 start-time now", "life forever start-time pending"]),
)
STATES = st.tuples(st.dictionaries(st.integers(1, 3), OPERATIONS), st.booleans(), st.sets(st.integers(7, 8)))


def _state(state: tuple[dict[int, tuple[str, int | None, str | None]], bool, set[int]]) -> str:
    operations, responder, ports = state
    lines = ["ip sla responder"] if responder else []
    lines += [f"ip sla responder udp-echo port {port}" for port in ports]
    for number, (kind, frequency, schedule) in operations.items():
        lines += [f"ip sla {number}", f" {kind}", " timeout 500"]
        lines += [] if frequency is None else [f" frequency {frequency}"]
        lines += [] if schedule is None else [f"ip sla schedule {number} {schedule}"]
    return _running_lines("\n".join(lines))


@settings(max_examples=example_count(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STATES, STATES)
def test_any_ip_sla_state_is_restored(before: Any, after: Any) -> None:
    device = parse_config(_state(after), HARDWARE, source="after")
    undo = undo_lines(_state(before), _state(after), HARDWARE)
    apply_config(device, "\n".join(undo), source="undo")
    assert render(device) == _state(before)
    # Lines that disappear with their operation are not removed a second time.
    removed = {line.split()[-1] for line in undo if re.fullmatch(r"no ip sla \d+", line)}
    assert not removed & {line.split()[-1] for line in undo if line.startswith("no ip sla schedule")}
