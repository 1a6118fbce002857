"""Captures with several interfaces or duplicate packets: separated, or refused with the choice to make."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from test_limiter_inference import ethernet_frame
from test_pcap import describe_packets, of_interface, pcap

from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.exchange.readers import capture, read_foreign
from qoslab.exchange.readers.capture import read

COUNT = 400
GAP_NS = 4_000_000
LATER_NS = 300_000
START_NS = 10**18


def packets_on_both_sides(file: Path, *, names: tuple[str, str] = ("eth0", "eth1")) -> Path:
    """Return packets that a router receives on one interface and sends on the other."""
    blocks = [describe_packets([(names[0], 1), (names[1], 1)])]
    for number in range(COUNT):
        now = START_NS + number * GAP_NS
        blocks += [
            of_interface(0, now, ethernet_frame(number, 514, 64)),
            of_interface(1, now + LATER_NS, ethernet_frame(number, 514, 63)),
        ]
    file.write_bytes(b"".join(blocks))
    return file


def one_side(file: Path, *, ttl: int = 63, copies: int = 1, each: int = 1, size: int = 514) -> Path:
    """Return the packets behind the router; one of `each` is in the capture several times."""
    frames = []
    for number in range(COUNT):
        seconds, rest = divmod(START_NS + number * GAP_NS + LATER_NS, 10**9)
        count = copies if number % each == 0 else 1
        frames += [(seconds, rest + 1000 * copy, ethernet_frame(number, size, ttl)) for copy in range(count)]
    file.write_bytes(pcap("<", 0xA1B23C4D, 1, frames, kept=514))
    return file


def test_infer_refuses_both_sides_in_one_capture_and_names_the_interfaces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = packets_on_both_sides(tmp_path / "before.pcapng"), one_side(tmp_path / "after.pcap")
    assert main(["infer", str(before), str(after)]) == 2
    output = capsys.readouterr().err
    assert "before.pcapng: found 400 packets on more than one interface, expected packets from one interface" in output
    assert "Choose one with --interface: eth0 (400 packets), eth1 (400 packets)." in output


@pytest.mark.parametrize("name", ["eth0", "0"])
def test_infer_uses_the_chosen_interface_of_a_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    before, after = packets_on_both_sides(tmp_path / "before.pcapng"), one_side(tmp_path / "after.pcap")
    assert main(["infer", str(before), str(after), "--interface", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["packets"] == {"before": COUNT, "after": COUNT, "both": COUNT}
    assert found["limiter"]["kind"] == "nothing"


def test_infer_reads_both_sides_from_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(packets_on_both_sides(tmp_path / "both.pcapng"))
    assert main(["infer", file, file, "--interface", "eth0", "--interface", "eth1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["packets"]["both"] == COUNT


def test_infer_lists_the_interfaces_if_the_wanted_one_has_no_packets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(packets_on_both_sides(tmp_path / "both.pcapng"))
    assert main(["infer", file, file, "--interface", "eth0", "--interface", "eth2"]) == 2
    assert 'no packets from interface "eth2", expected one of eth0 (400 packets), eth1' in capsys.readouterr().err
    assert main(["infer", file, file, *["--interface", "eth0"] * 3]) == 2
    assert "found --interface 3 times, expected it once, or twice" in capsys.readouterr().err


def test_infer_refuses_duplicate_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = one_side(tmp_path / "before.pcap", copies=2), one_side(tmp_path / "after.pcap")
    assert main(["infer", str(before), str(after)]) == 2
    output = capsys.readouterr().err
    assert "before.pcap: found 400 packets twice, expected each once" in output and "editcap -d" in output


def test_import_separates_interfaces(tmp_path: Path) -> None:
    packets = read(packets_on_both_sides(tmp_path / "both.pcapng")).packets
    assert packets is not None
    totals = packets[packets["flow"] == "all"].groupby("capture")["packets"].sum()
    pd.testing.assert_series_equal(
        totals, pd.Series({"both-eth0": COUNT, "both-eth1": COUNT}), check_names=False, check_index_type=False
    )


@pytest.mark.parametrize(("name", "capture"), [("eth1", "both-eth1"), ("0", "both-eth0")])
def test_import_reads_only_the_chosen_interface(tmp_path: Path, name: str, capture: str) -> None:
    both, alone = packets_on_both_sides(tmp_path / "both.pcapng"), one_side(tmp_path / "alone.pcap")
    arguments = ["import", str(both), str(alone), "--to", str(tmp_path / "to"), "--interface", name]
    assert main(arguments) == 0
    table = pd.read_parquet(tmp_path / "to/tables/packets_io.parquet")
    totals = table[table["flow"] == "all"].groupby("capture")["packets"].sum()
    assert dict(totals) == {capture: COUNT, "alone": COUNT}


def test_import_lists_the_interfaces_if_the_chosen_one_has_no_packets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = packets_on_both_sides(tmp_path / "both.pcapng")
    assert main(["import", str(both), "--to", str(tmp_path / "to"), "--interface", "eth2"]) == 2
    assert 'no packets from interface "eth2", expected one of eth0 (400 packets), eth1' in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


def test_import_names_an_interface_without_a_name_by_its_number(tmp_path: Path) -> None:
    packets = read(packets_on_both_sides(tmp_path / "both.pcapng", names=("", ""))).packets
    assert packets is not None and set(packets["capture"]) == {"both-0", "both-1"}


def test_import_refuses_duplicate_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = one_side(tmp_path / "mirror.pcap", copies=2)
    assert main(["import", str(file), "--to", str(tmp_path / "to")]) == 2
    assert "mirror.pcap: found 400 packets twice, expected each once" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["infer", "import"])
def test_copies_of_some_packets_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Refuse copies: they would count as lost, or twice."""
    file, after = one_side(tmp_path / "mirror.pcap", copies=2, each=10), one_side(tmp_path / "after.pcap")
    others = [str(after)] if command == "infer" else ["--to", str(tmp_path / "to")]
    assert main([command, str(file), *others]) == 2
    assert "mirror.pcap: found 40 packets twice, expected each once" in capsys.readouterr().err


def test_identical_acknowledgements_are_not_duplicates(tmp_path: Path) -> None:
    packets = read(one_side(tmp_path / "acks.pcap", copies=2, each=10, size=66)).packets
    assert packets is not None and packets.loc[packets["flow"] == "all", "packets"].sum() == COUNT * 11 // 10


def test_interfaces_with_the_same_name_are_also_named_by_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Name interfaces by number too, for example in merged captures of two machines."""
    file = packets_on_both_sides(tmp_path / "both.pcapng", names=("eth0", "eth0"))
    packets = read(file).packets
    assert packets is not None and set(packets["capture"]) == {"both-eth0#0", "both-eth0#1"}
    assert main(["infer", str(file), str(file)]) == 2
    assert "eth0#0 (400 packets), eth0#1 (400 packets)" in capsys.readouterr().err
    assert main(["infer", str(file), str(file), "--interface", "eth0#0", "--interface", "eth0#1"]) == 0


def test_import_limits_the_number_of_separated_interfaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_INTERFACES", 1)
    file = packets_on_both_sides(tmp_path / "both.pcapng")
    with pytest.raises(UserError, match=r"both\.pcapng: found 2 interfaces with packets, expected at most 1"):
        read_foreign(file)
    assert read_foreign(file, interfaces=["eth1"]).packets is not None
