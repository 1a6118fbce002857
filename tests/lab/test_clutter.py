"""Runs on routers whose configurations are full of lines that the model lacks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run
from test_device_failures import restart
from test_iosd import session
from test_run import EXPERIMENT, latest

from qoslab.cli import main
from qoslab.ios.device_config.running_config_parser import normalise_blanks
from qoslab.virtual_lab import Lab
from verdicts import newest_run, status_of

pytestmark = pytest.mark.lab

IN_BLOCKS = {
    "interface FastEthernet0/0": ["ip nat inside", "ip wccp web-cache redirect in", "crypto map TUNNELS"],
    "interface FastEthernet0/1": ["ip nat outside", "ip inspect OUT out"],
}
"""Lines in interface blocks of the virtual router."""
OF_ITS_OWN = """\
crypto isakmp policy 10
 encr aes 256
 authentication pre-share
router ospf 7
 router-id 10.0.0.1
 network 10.0.0.0 0.255.255.255 area 0
router bgp 65001
 address-family ipv4
  neighbor 10.0.0.9 activate
  no auto-summary
 exit-address-family
interface wlan-controller1/0
 ip address 10.77.0.1 255.255.255.252
 description of a card that is not there
 service-policy output Theirs
ip nat pool P 10.0.0.1 10.0.0.2 prefix-length 24
"""
"""Global lines that begin with a word known in another mode: none may join the preceding block."""
CLUTTER = OF_ITS_OWN + "".join(
    f"{head}\n description not this one\n" + "".join(f" {line}\n" for line in lines)
    for head, lines in IN_BLOCKS.items()
)
VOLATILE = re.compile(r"Current configuration|Using \d+ out of|ntp clock-period|! ")


@pytest.fixture
def lab_with_inert_lines(name: str, clean: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lab, Path]]:
    """Provide the lab of an experiment with `lab up`, and its inventory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(clean / "state"))
    file, inventory = clean / "rack.txt", clean / "here.yml"
    file.write_text(CLUTTER)
    options = ("--name", name, "--inert-config", str(file), "--expose", str(inventory))
    assert main(["lab", "up", str(EXPERIMENT), *options]) == 0
    lab = Lab.find(name)
    try:
        yield lab, inventory
    finally:
        lab.down()


def show_output(lab: Lab, command: str) -> list[str]:
    lines = session(lab, "terminal length 0", command).splitlines()
    return [line for line in lines if not VOLATILE.match(line)]


@pytest.mark.long
def test_run_leaves_unknown_lines_unchanged_and_sends_none(clean: Path, lab_with_inert_lines: tuple[Lab, Path]) -> None:
    lab, inventory = lab_with_inert_lines
    running, startup = show_output(lab, "show running-config"), show_output(lab, "show startup-config")
    for lines in (running, startup):
        text = "\n".join(lines) + "\n"
        assert f"!\n{OF_ITS_OWN}" in text
        for head, unknown in IN_BLOCKS.items():
            assert "\n".join([head, *(f" {line}" for line in unknown)]) in text
        # Lines of the file that the router implements remain effective.
        assert "not this one" not in text
    arguments = ("--lab", str(inventory), "--duration", "3s", "--arm", "policed", "--arm", "shaped")
    status, output, errors = run(clean, "run", str(EXPERIMENT), *arguments)
    assert status == status_of(newest_run(clean)), errors + output
    assert "another user changed" not in errors, errors
    assert (show_output(lab, "show running-config"), show_output(lab, "show startup-config")) == (running, startup)
    folder = latest(clean)
    cells = [(folder / f"cells/{arm}/1/config/R1.running.ios").read_text() for arm in ("policed", "shaped")]
    assert all(" service-policy output" in text and " ip nat outside\n" in text for text in cells)
    sent = [
        normalise_blanks(line.partition("> ")[2])
        for file in sorted(folder.glob("transcripts/*/*"))
        for line in file.read_text().splitlines()
        if "> " in line
    ]
    assert {"service-policy output Police", "no service-policy output Police"} & set(sent), sent
    unknown = set(map(normalise_blanks, OF_ITS_OWN.splitlines())).union(*IN_BLOCKS.values())
    assert [line for line in sent if line.removeprefix("no ") in unknown] == []


@pytest.mark.long
def test_restarted_router_has_its_inert_lines_again(lab_with_inert_lines: tuple[Lab, Path]) -> None:
    lab, _ = lab_with_inert_lines
    running = configuration(lab, "running")
    asked = ("configure terminal", "interface FastEthernet0/1", "ip nat inside", "description of a test", "end")
    assert "% Not supported" in session(lab, *asked)
    assert configuration(lab, "running") != running
    asyncio.run(restart(lab))
    assert configuration(lab, "running") == running
    session(lab, "write memory")
    assert configuration(lab, "startup") == running


def configuration(lab: Lab, which: str) -> str:
    """Return the text between the heading and the prompt."""
    text = "\n".join(show_output(lab, f"show {which}-config"))
    return text[text.index("\n!") : text.index("\nend")]
