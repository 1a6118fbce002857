"""Command and messages of dumpcap, and filters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostile_files import BASE
from qoslab.capture import TOOLS, CaptureCounts, CaptureError
from qoslab.capture.filters import filter_problem, filter_program
from qoslab.cli import main
from qoslab.model.capture_filters import filter_text_problem

STARTED = "Capturing on 'eth0'\nFile: server.pcapng\n"
ENDED = (
    STARTED
    + "\rPackets: 32 \rPackets captured: 776\n"
    + "Packets received/dropped on interface 'eth0': 776/3 (pcap:1/dumpcap:2/flushed:0/ps_ifdrop:0) (99.6%)\n"
)
REFUSED = (
    "Capturing on 'eth0'\n"
    "dumpcap: Invalid capture filter \"tcp porrt\" for interface 'eth0'.\n\n"
    "That string isn't a valid capture filter (can't parse filter expression: syntax error).\n"
)


class TestDumpcap:
    tool = TOOLS["dumpcap"]

    def test_dumpcap_command_has_all_options(self) -> None:
        argv = self.tool.command("eth0", "out.pcapng", filter="tcp", snaplen=128, comment="policed, server")
        assert argv[0] == "dumpcap"
        for option, value in (("-i", "eth0"), ("-w", "out.pcapng"), ("-s", "128"), ("-f", "tcp")):
            assert argv[argv.index(option) + 1] == value
        assert argv[argv.index("--capture-comment") + 1] == "policed, server"
        assert "-f" not in self.tool.command("eth0", "out.pcapng", snaplen=128)

    def test_capture_counts_as_running_when_its_file_is_open(self) -> None:
        assert self.tool.is_running(STARTED)
        assert not self.tool.is_running(STARTED.splitlines()[0])
        assert not self.tool.is_running(REFUSED), "it says that it is capturing before it has read the filter"

    def test_failure_quotes_dumpcap(self) -> None:
        assert self.tool.failure(ENDED) == ""
        assert self.tool.failure(REFUSED).startswith('Invalid capture filter "tcp porrt"')

    def test_dumpcap_packet_counts_are_parsed(self) -> None:
        assert self.tool.counts(ENDED) == CaptureCounts(received=776, dropped=3)
        with pytest.raises(CaptureError, match="killed"):
            self.tool.counts(STARTED)


class TestFilters:
    @pytest.mark.parametrize("text", ["tcp", "udp port 5201", "ip[1] & 0xfc == 0xb8", "net 10.0.0.0/8 and not arp"])
    def test_valid_filters_are_accepted(self, text: str) -> None:
        assert filter_problem(text) == ""

    @pytest.mark.parametrize(
        ("text", "most"),
        [
            ("portrange 5-70000", 65535),
            ("udp src portrange 65536-65540", 65535),
            ("tcp and dst port 65536", 65535),
            ("ip proto 300", 255),
            ("not ip6 proto 256", 255),
            ("ether proto 70000", 65535),
        ],
    )
    def test_numbers_that_no_packet_has_are_refused_before_libpcap(self, text: str, most: int) -> None:
        found, _ = filter_text_problem(text)
        assert found.startswith('found "po' if "port" in text else 'found "proto') and found.endswith(f"up to {most}")
        last = text.rpartition(" ")[0]
        assert filter_text_problem(f"{last} {most}")[0] == ""

    @pytest.mark.parametrize("text", ["tcp porrt", "port 99999999", "ip[", "tcp\0", "(" * 5000])
    def test_invalid_filters_are_refused(self, text: str) -> None:
        assert filter_problem(text)

    @pytest.mark.parametrize(
        "text",
        [
            "ip6 host 2001:db8::1 or ether host 00:11:22:33:44:55",
            "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and src net 192.168.10",
            "tcp port http or udp portrange 5201-5210 or ip proto \\icmp",
            "udp[0:2] = 53 and not (src host 10.0.0.1 or dst 10.0.0.2)",
            "ether proto 0x88cc and len > 100",
        ],
    )
    def test_filters_of_addresses_ports_and_bytes_are_valid(self, text: str) -> None:
        assert filter_text_problem(text) == ("", "")
        assert filter_problem(text) == ""

    @pytest.mark.parametrize(
        "name",
        [
            *("host leak.example", "leak.example", "host 3com.example", "net corp", "gateway R1", "ether host leak"),
            *("src leak and tcp", "port 80 or leak", "host \\leak", "dst host de.ad", "ip host leak_1"),
        ],
    )
    def test_filters_cause_no_dns_query(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("qoslab.capture.filters.subprocess.run", None)
        problem = filter_problem(name)
        assert problem is not None and "expected a word of pcap-filter(7), an address or a number" in problem

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                " or ".join(f"port {number}" for number in range(1, 102)),
                "found a filter of 101 terms, expected at most 64",
            ),
            (
                "||".join(f"port {number}" for number in range(1, 102)),
                "found a filter of 101 terms, expected at most 64",
            ),
            ("(" * 3000, "found a filter of 3000 characters, expected at most 2048"),
        ],
    )
    def test_filter_size_is_limited(self, text: str, message: str) -> None:
        assert filter_text_problem(text)[0] == message

    def test_filter_compilation_has_a_time_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        waits = [sys.executable, "-c", "import time; time.sleep(600)"]
        monkeypatch.setattr("qoslab.capture.filters.python_module_command", lambda *_: waits)
        monkeypatch.setattr("qoslab.capture.filters.COMPILE_S", 0.1)
        assert filter_problem("tcp") == "libpcap did not compile it within 0.1 s"

    def test_passwords_of_the_environment_are_not_passed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LAB_PASSWORD", "Tr0ub4dor")
        prints = [
            sys.executable,
            "-c",
            "import json, os; print(json.dumps({'problem': str(os.environ), 'program': []}))",
        ]
        monkeypatch.setattr("qoslab.capture.filters.python_module_command", lambda *_: prints)
        problem = filter_problem("tcp and port 4711")
        assert problem is not None and "PATH" in problem and "Tr0ub4dor" not in problem

    def test_filters_are_unchecked_without_libpcap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("qoslab.capture.filters.LIBRARIES", ("libnone.so.0",))
        assert filter_problem("tcp and and udp") is None

    def test_compiled_filters_end_with_a_return_instruction(self) -> None:
        # libpcap's program for "udp" contains a jeq with the EtherType of IPv6; the last instruction returns.
        program = filter_program("udp")
        assert (21, 0x86DD) in {(code, operand) for code, _, _, operand in program}
        assert program[-1] == (6, 0, 0, 0) and (6, 0, 0, 262144) in program
        assert filter_program(" ") == ()

    def test_uncompilable_lines_are_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(CaptureError, match=r"the filter 'tcp and and udp' is not valid: .*syntax error"):
            filter_program("tcp and and udp")
        monkeypatch.setattr("qoslab.capture.filters.LIBRARIES", ("libnone.so.0",))
        with pytest.raises(CaptureError, match=r"libpcap is missing \(libnone.so.0\)"):
            filter_program("tcp")

    def test_invalid_filter_is_refused_before_the_lab_starts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        capture = "captures:\n  - {name: wire, node: server, interface: eth0, filter: tcp and and udp}\n"
        (tmp_path / "e.yml").write_text(BASE + capture)
        assert main(["run", "e.yml"]) == 2
        output = capsys.readouterr().err
        assert 'capture wire: found the filter "tcp and and udp", expected the syntax of pcap-filter(7): ' in output
        assert not (tmp_path / "runs").exists()
