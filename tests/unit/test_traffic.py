"""Commands and parsers of the traffic tools, against recorded outputs of the real tools."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels import example_count
from qoslab.errors import ExitStatus, UserError
from qoslab.model.experiment import Flow
from qoslab.model.units import Duration, Rate, Size
from qoslab.traffic import (
    TOOLS,
    Endpoints,
    FlowOutput,
    Listener,
    SendingPace,
    TrafficError,
    count_connections,
    find_tool,
    is_listening,
    used_ports,
)
from qoslab.traffic.iperf2 import read_report

RECORDED = Path(__file__).parents[1] / "recorded" / "traffic"
ENDS = Endpoints(IPv4Address("192.168.10.2"), IPv4Address("192.168.20.2"), 5201, client_port=40000)


def seconds(count: float) -> Duration:
    return Duration(int(count * 10**9))


def flow(**keys: object) -> Flow:
    return Flow.model_validate({"name": "transfer", "tool": "iperf3", "from": "client", "to": "server"} | keys)


def recorded_output(name: str, suffix: str) -> tuple[FlowOutput, FlowOutput]:
    def side(which: str) -> FlowOutput:
        errors = RECORDED / f"{name}.{which}.err"
        return FlowOutput(
            (RECORDED / f"{name}.{which}.{suffix}").read_text(), errors.read_text() if errors.exists() else "", 0
        )

    return side("client"), side("server")


def test_unknown_tool_names_the_known_ones() -> None:
    with pytest.raises(UserError, match=r'"ttcp", expected one of flood, iperf, iperf3'):
        find_tool("ttcp")


@pytest.mark.parametrize("name", TOOLS)
def test_registry_name_equals_the_tool_name(name: str) -> None:
    assert TOOLS[name].name == name


IPV6_ENDS = Endpoints(IPv6Address("2001:db8:10::2"), IPv6Address("2001:db8:20::2"), 5201)


class TestIpv6:
    def test_iperf3_gets_the_ip_version(self) -> None:
        commands = find_tool("iperf3").commands(flow(protocol="udp", rate=Rate(10**6)), seconds(3), IPV6_ENDS, "reno")
        assert commands.server[:3] == ("iperf3", "-6", "--server")
        client = " ".join(commands.client)
        assert client.startswith("iperf3 -6 --client 2001:db8:20::2 --port 5201 --json --bind 2001:db8:10::2 ")
        # Its own 1460 bytes would be fragmented: 1500 less 40 and 8.
        assert "--length 1452" in client

    def test_iperf_gets_the_ip_version_on_both_sides(self) -> None:
        commands = find_tool("iperf").commands(flow(tool="iperf"), seconds(3), IPV6_ENDS, "reno")
        assert "-V" in commands.server and "-V" in commands.client
        assert "-V" not in find_tool("iperf").commands(flow(tool="iperf"), seconds(3), ENDS, "reno").client

    def test_each_tool_has_its_protocols(self) -> None:
        assert {name: each.families for name, each in TOOLS.items()} == {
            "iperf3": (4, 6),
            "iperf": (4, 6),
            "flood": (4, 6),
        }

    def test_ipv6_datagram_has_20_bytes_less_payload(self) -> None:
        assert [find_tool("iperf3").largest_datagram(family) for family in (4, 6)] == [1472, 1452]


class TestCommands:
    def test_iperf3_tcp_command_has_all_options(self) -> None:
        asked = flow(streams=4, window=Size(16384), dscp=46)
        commands = find_tool("iperf3").commands(asked, seconds(30), ENDS, "reno")
        client = " ".join(commands.client)
        assert "--client 192.168.20.2 --port 5201 --json" in client
        for option in (
            "--parallel 4",
            "--time 30",
            "--congestion reno",
            "--window 16384",
            "--tos 184",
            "--cport 40000",
            "--length 1460",
        ):
            assert option in client
        assert "--one-off" in commands.server and "--json" in commands.server
        assert commands.server_exits
        assert commands.listener == Listener("tcp", 5201)
        assert commands.deadline_s > 30

    def test_iperf_binds_to_the_client_port(self) -> None:
        iperf = find_tool("iperf")
        assert "192.168.10.2:40000" in iperf.commands(flow(), seconds(1), ENDS, "reno").client
        (problem,) = iperf.check(flow(tool="iperf", client_port=40000, family=6))
        assert problem.key == "client_port"

    def test_congestion_control_of_a_flow_wins(self) -> None:
        for name in ("iperf3", "iperf"):
            assert (
                "cubic" in find_tool(name).commands(flow(congestion_control="cubic"), seconds(1), ENDS, "reno").client
            )

    @pytest.mark.parametrize(
        ("rate", "size", "pacing"), [(1_000_000, 500, "1000"), (10_000_000, 200, "160"), (10**9, 1400, "50")]
    )
    def test_iperf3_udp_paces_each_datagram(self, rate: int, size: int, pacing: str) -> None:
        client = (
            find_tool("iperf3")
            .commands(flow(protocol="udp", rate=Rate(rate), size=Size(size)), seconds(1), ENDS, "reno")
            .client
        )
        assert client[client.index("--pacing-timer") + 1] == pacing
        assert "--congestion" not in client

    @pytest.mark.parametrize("name", ["iperf3", "iperf"])
    def test_udp_without_a_rate_is_refused(self, name: str) -> None:
        with pytest.raises(UserError, match='traffic "transfer": a UDP flow needs a rate'):
            find_tool(name).commands(flow(protocol="udp"), seconds(1), ENDS, "reno")

    def test_iperf3_refuses_fractional_seconds(self) -> None:
        with pytest.raises(UserError, match=r"1.5 s, expected whole seconds"):
            find_tool("iperf3").commands(flow(), seconds(1.5), ENDS, "reno")

    def test_iperf2_udp_listens_on_udp(self) -> None:
        commands = find_tool("iperf").commands(flow(protocol="udp", rate=Rate(8000)), seconds(2), ENDS, "reno")
        assert commands.listener == Listener("udp", 5201)
        assert "-u" in commands.server
        assert not commands.server_exits


class TestIperf3:
    def test_tcp_values_come_from_the_server(self) -> None:
        client, server = recorded_output("iperf3-tcp", "json")
        result = find_tool("iperf3").parse(flow(streams=4), seconds(4), client, server)
        end = json.loads(server.stdout)["end"]
        assert sum(stream.bytes for stream in result.streams) == end["sum_received"]["bytes"]
        assert sum(stream.goodput_bps for stream in result.streams) == pytest.approx(
            end["sum_received"]["bits_per_second"], rel=1e-6
        )
        assert [stream.local_port for stream in result.streams] == [40000, 40001, 40002, 40003]
        sent = json.loads(client.stdout)["end"]["sum_sent"]
        assert sum(stream.sender_bytes or 0 for stream in result.streams) == sent["bytes"]
        assert sum(stream.retransmits or 0 for stream in result.streams) == sent["retransmits"]
        # The client reports more than arrived, so its values are not used.
        assert sent["bytes"] > end["sum_received"]["bytes"]
        assert result.version == "iperf 3.12"

    def test_intervals_add_up_to_the_streams(self) -> None:
        result = find_tool("iperf3").parse(flow(streams=4), seconds(4), *recorded_output("iperf3-tcp", "json"))
        for stream in result.streams:
            assert stream.bytes == sum(each.bytes for each in result.intervals if each.stream == stream.stream)

    def test_udp_streams_have_bytes_despite_a_printed_zero(self) -> None:
        client, server = recorded_output("iperf3-udp", "json")
        result = find_tool("iperf3").parse(
            flow(streams=2, protocol="udp", rate=Rate(10**6)), seconds(3), client, server
        )
        end = json.loads(server.stdout)["end"]
        assert end["streams"][0]["udp"]["bytes"] == 0
        assert sum(stream.bytes for stream in result.streams) == end["sum_received"]["bytes"] > 0
        assert result.pace is not None and 0 < result.pace.shortfall < 1e-4 and result.pace.late_p99_ms is None
        for stream in result.streams:
            assert stream.datagrams is not None and stream.lost is not None
            assert stream.bytes == (stream.datagrams - stream.lost) * 500

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("no-such-congestion-control", "iperf3 client.*unable to set TCP_CONGESTION"),
            ("server-killed", "iperf3 client.*control socket has closed.*iperf3 server.*found no JSON"),
            ("server-terminated", "iperf3 client.*the server has terminated.*iperf3 server.*interrupt"),
        ],
    )
    def test_failures_name_the_side_and_quote_the_tool(self, name: str, message: str) -> None:
        with pytest.raises(TrafficError, match=message) as caught:
            find_tool("iperf3").parse(flow(), seconds(4), *recorded_output(f"iperf3-{name}", "json"))
        assert caught.value.exit_status == ExitStatus.RUN_INVALID
        assert 'traffic "transfer"' in caught.value.message

    def test_iperf3_stream_count_must_match_the_flow(self) -> None:
        with pytest.raises(TrafficError, match="found results of 4 streams, expected 3"):
            find_tool("iperf3").parse(flow(streams=3), seconds(4), *recorded_output("iperf3-tcp", "json"))

    def test_early_end_of_iperf3_is_an_error(self) -> None:
        with pytest.raises(TrafficError, match=r"ended after 4\.\d s, expected 10 s"):
            find_tool("iperf3").parse(flow(streams=4), seconds(10), *recorded_output("iperf3-tcp", "json"))

    def test_bare_nan_and_surroundings_are_reported(self) -> None:
        client, server = recorded_output("iperf3-tcp", "json")
        broken = client.stdout.replace('"host_total":\t', '"odd":\t-nan,\n"host_total":\t')
        result = find_tool("iperf3").parse(
            flow(streams=4), seconds(4), FlowOutput("hello\n" + broken), FlowOutput(server.stdout + "bye")
        )
        assert len(result.warnings) == 3

    def test_client_is_finished_when_the_document_is_complete(self) -> None:
        server = recorded_output("iperf3-tcp", "json")[1].stdout
        assert find_tool("iperf3").is_finished(flow(), server)
        assert not find_tool("iperf3").is_finished(flow(), server[:-10])
        assert not find_tool("iperf3").is_finished(flow(), "")


class TestIperf2:
    def test_tcp_values_come_from_the_server(self) -> None:
        client, server = recorded_output("iperf-tcp", "txt")
        result = find_tool("iperf").parse(flow(tool="iperf", streams=4), seconds(4), client, server)
        for stream in result.streams:
            # iperf 2 omits a last interval of some milliseconds.
            intervals = sum(each.bytes for each in result.intervals if each.stream == stream.stream)
            assert 0.95 * stream.bytes <= intervals <= stream.bytes
            # TCP finally delivers everything that the client sent, but later.
            assert stream.sender_bytes == stream.bytes
            assert stream.retransmits is not None
            assert stream.goodput_bps == pytest.approx(stream.bytes * 8 / stream.seconds)
        assert result.version == "2.1.8"

    def test_udp_values_come_from_the_server(self) -> None:
        result = find_tool("iperf").parse(
            flow(tool="iperf", streams=2, protocol="udp", rate=Rate(10**6)),
            seconds(3),
            *recorded_output("iperf-udp", "txt"),
        )
        for stream in result.streams:
            assert stream.datagrams is not None and stream.lost is not None and stream.jitter_ms is not None
            assert stream.bytes == (stream.datagrams - stream.lost) * 500
        assert any("ack of last datagram failed" in warning for warning in result.warnings)
        # It sent a little more than requested.
        assert result.pace == SendingPace(0.0)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("no-such-congestion-control", "client.*Attempt to set 'nonesuch' congestion control failed"),
            ("server-killed", "client.*tcp write failed: Broken pipe"),
        ],
    )
    def test_failures_name_the_side_and_quote_the_tool(self, name: str, message: str) -> None:
        with pytest.raises(TrafficError, match=message):
            find_tool("iperf").parse(flow(tool="iperf"), seconds(4), *recorded_output(f"iperf-{name}", "txt"))

    def test_report_of_iperf_2_0_is_parsed(self) -> None:
        report = read_report((RECORDED / "iperf-2.0-client.txt").read_text())
        assert report.local_ports == {1916: 1922, 1900: 1923}
        totals = report.totals()
        assert totals[1916].bytes == round(1.13 * 2**20)
        assert totals[1916].bps == 311_000
        assert totals[1900].bytes == 536 * 2**10
        assert totals[1900].end_s == 30.5

    def test_client_is_finished_when_every_stream_has_a_total(self) -> None:
        server = recorded_output("iperf-tcp", "txt")[1].stdout
        asked = flow(tool="iperf", streams=4)
        assert find_tool("iperf").is_finished(asked, server)
        last_total = server.rindex("] 0.0000-", 0, server.rindex("[SUM]"))
        assert not find_tool("iperf").is_finished(asked, server[:last_total])


class TestHostileOutput:
    """Tests of hostile output: the parser gives values or its own error for any output of the tools."""

    @staticmethod
    def parse(name: str, client: str, server: str) -> None:
        try:
            result = find_tool(name).parse(
                flow(tool=name, streams=4), seconds(4), FlowOutput(client), FlowOutput(server)
            )
        except TrafficError as error:
            assert name in error.message and "transfer" in error.message
        else:
            assert len(result.streams) == 4

    @pytest.mark.parametrize(("name", "suffix"), [("iperf3", "json"), ("iperf", "txt")])
    @settings(max_examples=example_count(150), deadline=None)
    @given(data=st.data())
    def test_truncated_and_overwritten_output_is_refused(self, name: str, suffix: str, data: st.DataObject) -> None:
        texts = [output.stdout for output in recorded_output(f"{name}-tcp", suffix)]
        side = data.draw(st.integers(0, 1))
        start = data.draw(st.integers(0, len(texts[side])))
        length = data.draw(st.sampled_from([0, 1, 2, 10, 10**6]))
        filler = data.draw(
            st.one_of(st.text(max_size=6), st.sampled_from(["null", "-1", "1e999", "{}", "[", '"', "0"]))
        )
        texts[side] = texts[side][:start] + filler + texts[side][start + length :]
        self.parse(name, *texts)

    @pytest.mark.parametrize("name", TOOLS)
    @settings(max_examples=example_count(60), deadline=None)
    @given(client=st.text(), server=st.text())
    def test_arbitrary_output_is_parsed_or_refused(self, name: str, client: str, server: str) -> None:
        self.parse(name, client, server)

    @settings(max_examples=example_count(100), deadline=None)
    @given(
        path=st.lists(st.integers(0, 30), min_size=1, max_size=8), value=st.sampled_from([None, "x", -1, [], {}, 1e300])
    )
    def test_iperf3_output_with_a_wrong_type_is_refused(self, path: list[int], value: object) -> None:
        client, server = recorded_output("iperf3-tcp", "json")
        document = json.loads(server.stdout)
        here = document
        for step in path:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            key = keys[step % len(keys)]
            if isinstance(here[key], dict | list) and step is not path[-1]:
                here = here[key]
                continue
            here[key] = value
            break
        self.parse("iperf3", client.stdout, json.dumps(document))


def insert_noise(**keys: object) -> Flow:
    return flow(tool="flood", protocol="udp", **keys)


class TestFlood:
    def test_constant_flood_of_the_article_is_configured(self) -> None:
        asked = insert_noise(rate=Rate(600_000), size=Size(200), dscp=46, streams=2)
        commands = find_tool("flood").commands(asked, seconds(2.5), ENDS, "reno")
        assert " ".join(commands.client) == (
            "flood send 192.168.20.2 --source 192.168.10.2 --bandwidth 600 --size 200 --port 5201 --source-port 40000 "
            "--duration 2.5 --streams 2 --seed 1 --id 1 --dscp 46"
        )
        assert commands.listener == Listener("udp", 5201)

    def test_flood_of_ipv6_has_the_longer_header(self) -> None:
        asked = insert_noise(rate=Rate(600_000), size=Size(200), family=6)
        commands = find_tool("flood").commands(asked, seconds(1), IPV6_ENDS, "reno")
        assert commands.client[2:5] == ("2001:db8:20::2", "--source", "2001:db8:10::2")
        assert commands.server[:4] == ("flood", "receive", "--address", "2001:db8:20::2")
        assert find_tool("flood").sending_pattern(asked)["payload_bytes"] == 200 - 48

    def test_variable_flood_of_the_article_is_configured(self) -> None:
        asked = insert_noise(delay=Duration(3_000_000), random=("size", "port"))
        commands = find_tool("flood").commands(asked, seconds(60), ENDS, "reno")
        assert "--delay 3 --source-port" in " ".join(commands.client)
        assert not {"--size", "--port", "--bandwidth"} & set(commands.client)
        assert "--any-port" in commands.server
        assert commands.listener == Listener("raw", 17)

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"protocol": "tcp", "delay": Duration(10**9)}, 'found no key "size", required for pages'),
            ({"protocol": "tcp", "size": Size(100)}, 'found neither of the keys "rate" and "delay"'),
            ({"protocol": "tcp", "rate": Rate(1), "size": Size(1000)}, "expected at least one page an hour"),
            ({"protocol": "tcp", "delay": Duration(4 * 10**12), "size": Size(9)}, "expected at most 3600 s between"),
            ({"protocol": "tcp", "delay": Duration(1), "size": Size(9), "random": ("port",)}, "on a TCP flow"),
            ({"size": Size(100)}, 'neither of the keys "rate" and "delay"'),
            ({"rate": Rate(1), "delay": Duration(1), "size": Size(100)}, "both of the keys"),
            ({"rate": Rate(1)}, 'no key "size"'),
            ({"rate": Rate(1), "size": Size(55)}, "expected an IP packet of 56 B to 65535 B"),
            ({"rate": Rate(1), "size": Size(75), "family": 6}, "expected an IP packet of 76 B to 65535 B"),
            ({"rate": Rate(1), "random": ("size",)}, "with random sizes, expected a delay"),
            ({"delay": Duration(1), "size": Size(100), "random": ("size",)}, "in addition to a random size"),
            ({"delay": Duration(1), "size": Size(100), "random": ("port",), "port": 7}, "in addition to a random port"),
            ({"rate": Rate(1), "size": Size(1000)}, "found 1 b/s in packets of 1 kB, 8000 s apart"),
            ({"delay": Duration(3601 * 10**9), "size": Size(1000)}, "expected at most 1 h"),
            ({"delay": Duration(1), "random": ("size", "size")}, "each word at most once"),
            ({"delay": Duration(1), "size": Size(100), "window": Size(1)}, "on flows of iperf only"),
            ({"delay": Duration(1), "size": Size(100), "may_fail": True}, "flood has no failure to allow"),
        ],
    )
    def test_unsupported_traffic_is_refused(self, keys: dict[str, object], message: str) -> None:
        (problem,) = find_tool("flood").check(flow(**({"tool": "flood", "protocol": "udp"} | keys)))
        assert message in problem.message

    def test_flood_values_come_from_the_receiver(self) -> None:
        result = find_tool("flood").parse(insert_noise(), seconds(10), *recorded_output("flood-lossy", "jsonl"))
        (stream,) = result.streams
        assert (stream.datagrams, stream.lost, stream.bytes) == (46_776, 46_588, 188 * 72)
        assert stream.goodput_bps == 188 * 72 * 8 / 10
        assert stream.sender_bytes == 46_776 * 72
        assert result.warnings == ("flood client: it got no CPU time and skipped 3224 of 50000 datagrams",)
        assert sum(interval.bytes for interval in result.intervals) == stream.bytes

    def test_flood_streams_are_distinguished(self) -> None:
        asked = insert_noise(streams=2)
        client, server = recorded_output("flood-random", "jsonl")
        result = find_tool("flood").parse(asked, seconds(5), client, server)
        assert [stream.datagrams for stream in result.streams] == [1667, 1667]
        assert [stream.bytes for stream in result.streams] == [923_038, 906_319]
        for stream in result.streams:
            of_stream = [each for each in result.intervals if each.stream == stream.stream]
            assert sum(each.bytes for each in of_stream) == stream.bytes
        with pytest.raises(TrafficError, match="results of 2 streams, expected 1"):
            find_tool("flood").parse(insert_noise(), seconds(5), client, server)

    def test_waiting_receiver_has_no_intervals(self) -> None:
        """Parse a receiver that waits for packets still in queues: empty intervals of that time would count as time
        without goodput.
        """
        client, server = recorded_output("flood-lossy", "jsonl")
        total = server.stdout.splitlines()[-1]

        def interval(number: int, packets: int) -> str:
            own = {"start_s": 0.5 * number, "end_s": 0.5 * number + 0.5, "packets": packets, "sources": []}
            return json.dumps({"interval": own | {"payload_bytes": 72 * packets}})

        def ends(*packets: int) -> float:
            text = "\n".join([*(interval(number, each) for number, each in enumerate(packets)), total])
            return find_tool("flood").parse(insert_noise(), seconds(2), client, FlowOutput(text)).intervals[-1].end_s

        assert ends(1, 1, 1, 1, 0, 0, 0, 0) == 2.0
        # Silence counts while packets are sent to it, and so do late packets.
        assert ends(1, 0, 0, 0, 0, 0, 0) == 2.0
        assert ends(1, 1, 1, 1, 0, 1, 0, 0, 0, 0) == 3.0

    def test_sender_reports_skipped_packets_and_lateness(self) -> None:
        client, server = recorded_output("flood-lossy", "jsonl")
        pace = find_tool("flood").parse(insert_noise(), seconds(10), client, server).pace
        # The latest packets were at least as late as the highest bucket of lateness, which is no value.
        assert pace == SendingPace(3224 / (3224 + 46776), 665e-6, None)
        refused = client.stdout.replace('"send_errors":{}', '"send_errors":{"ENOBUFS":50000}')
        pace = find_tool("flood").parse(insert_noise(), seconds(10), FlowOutput(refused), server).pace
        assert pace is not None and pace.shortfall == 3224 / 100_000

    def test_flood_without_arrivals_has_zero_goodput(self) -> None:
        client, server = recorded_output("flood-lossy", "jsonl")
        total = json.loads(server.stdout.splitlines()[-1])
        total["received"] |= {"packets": 0, "bytes": 0, "payload_bytes": 0, "sources": []}
        result = find_tool("flood").parse(insert_noise(), seconds(10), client, FlowOutput(json.dumps(total)))
        assert [(stream.bytes, stream.goodput_bps, stream.lost) for stream in result.streams] == [(0, 0, 46_776)]

    def test_overflowed_receiver_is_invalid(self) -> None:
        client, server = recorded_output("flood-lossy", "jsonl")
        text = server.stdout.replace('"overflowed":0', '"overflowed":3')
        with pytest.raises(TrafficError, match="lost 3 received datagrams"):
            find_tool("flood").parse(insert_noise(), seconds(10), client, FlowOutput(text))

    def test_failures_name_the_side_and_quote_the_tool(self) -> None:
        text = FlowOutput("", "flood: cannot use 10.0.0.1:0 as the local address: Cannot assign requested address\n", 1)
        with pytest.raises(TrafficError, match=r'flood client, traffic "transfer": cannot use 10\.0'):
            find_tool("flood").parse(insert_noise(), seconds(1), text, FlowOutput(""))

    def test_flood_is_finished_when_arrivals_end(self) -> None:
        _, server = recorded_output("flood-lossy", "jsonl")
        lines = server.stdout.splitlines()[:-1]
        silent = json.dumps({"interval": {"start_s": 0.0, "end_s": 0.5, "packets": 0, "payload_bytes": 0}})
        assert not find_tool("flood").is_finished(insert_noise(), "\n".join(lines[:5]))
        assert find_tool("flood").is_finished(insert_noise(), "\n".join(lines[:5] + [silent] * 4))
        assert not find_tool("flood").is_finished(insert_noise(), "\n".join(lines[:5] + [silent] * 3))
        assert find_tool("flood").is_finished(insert_noise(), '{"waiting":{"seconds":0.5}}\n' * 4)
        assert find_tool("flood").is_finished(insert_noise(background=True), "")

    @settings(max_examples=example_count(150), deadline=None)
    @given(data=st.data())
    def test_truncated_and_overwritten_output_is_refused(self, data: st.DataObject) -> None:
        texts = [output.stdout for output in recorded_output("flood-random", "jsonl")]
        side = data.draw(st.integers(0, 1))
        start = data.draw(st.integers(0, len(texts[side])))
        length = data.draw(st.sampled_from([0, 1, 2, 10, 10**6]))
        filler = data.draw(st.sampled_from(["", "null", "-1", "1e999", "{}", "[", '"', "0", "\n"]))
        texts[side] = texts[side][:start] + filler + texts[side][start + length :]
        try:
            result = find_tool("flood").parse(
                insert_noise(streams=2), seconds(5), FlowOutput(texts[0]), FlowOutput(texts[1])
            )
        except TrafficError as error:
            assert "flood" in error.message and "transfer" in error.message
        else:
            assert len(result.streams) == 2


class TestMayFail:
    def test_failed_connections_are_reported_as_result(self) -> None:
        asked = flow(tool="iperf", streams=4, may_fail=True)
        result = find_tool("iperf").parse(asked, seconds(4), *recorded_output("iperf-blocked", "txt"))
        assert [(stream.local_port, stream.bytes, stream.goodput_bps) for stream in result.streams] == [
            (None, 0, 0)
        ] * 4
        assert result.failure == "0 of 4 connections were established"
        with pytest.raises(TrafficError, match="results of 0 streams, expected 4"):
            find_tool("iperf").parse(
                flow(tool="iperf", streams=4), seconds(4), *recorded_output("iperf-blocked", "txt")
            )

    def test_only_packets_before_the_deadline_count(self) -> None:
        client, server = recorded_output("iperf-tcp", "txt")
        report = read_report(server.stdout)
        cut = "\n".join(line for line in server.stdout.splitlines() if "0.0000-1." in line or "connected" in line)
        whole = find_tool("iperf").parse(flow(tool="iperf", streams=4, may_fail=True), seconds(4), client, server)
        for stream, lines in zip(whole.streams, dict(sorted(report.lines.items())).values(), strict=True):
            assert stream.bytes == sum(line.bytes for line in lines[:-1] if line.end_s < 4.7)
            assert stream.goodput_bps == stream.bytes * 8 / 4
        first = find_tool("iperf").parse(
            flow(tool="iperf", streams=4, may_fail=True), seconds(4), client, FlowOutput(cut)
        )
        assert [stream.bytes for stream in first.streams] == [
            lines[0].bytes for _, lines in sorted(report.lines.items())
        ]
        assert whole.failure == first.failure == ""

    def test_client_refusal_is_the_reason(self) -> None:
        client, server = recorded_output("iperf-blocked", "txt")
        output = FlowOutput(client.stdout + "tcp connect failed: Connection timed out\n")
        result = find_tool("iperf").parse(flow(tool="iperf", streams=4, may_fail=True), seconds(4), output, server)
        assert result.failure.endswith("Connection timed out; 0 of 4 connections were established")

    @pytest.mark.parametrize("keys", [{"tool": "iperf3"}, {"tool": "iperf", "protocol": "udp", "rate": Rate(8)}])
    def test_web_traffic_needs_iperf_over_tcp(self, keys: dict[str, object]) -> None:
        (problem,) = find_tool(str(keys["tool"])).check(flow(may_fail=True, **keys))
        assert problem.key == "may_fail"


def test_is_listening_reads_the_kernel_table() -> None:
    table = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33598 1\n"
        "   1: 0214A8C0:1452 020AA8C0:9C22 01 00000000:00000000 03:00001735 00000000     0        0 0 3\n"
    )
    assert is_listening([table], Listener("tcp", 0x1451))
    assert not is_listening([table], Listener("tcp", 0x1452)), "an established connection is no listener"
    assert not is_listening(["", table], Listener("udp", 0x1451))
    assert [count_connections(["", table], port) for port in (0x1451, 0x1452, 0x9C22)] == [0, 1, 0]
    assert used_ports([table + table], range(0x1452, 0x1460)) == [0x1452], "in any state, also while it ends"
