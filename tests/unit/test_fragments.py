"""Fragments of configuration from documents and labs, each pasted into the command line of its generation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from levels import every_nth
from qoslab.errors import IosError
from qoslab.ios.compile import compile_device
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render
from rollback_lines import undo_lines

FOLDER = Path(__file__).parent.parent / "fragments"
HEAD = re.compile(r"=== (classic|hqf|catalyst) \| ([^|\n]+?)(?: \| lacks: ([^|\n]+))?\n")
ROUTER = (
    *(f"FastEthernet{each}" for each in ("0/0", "0/1", "1/0", "1/1")),
    *(f"Serial{each}" for each in ("0/0", "0/1", "0/0/0", "0/1/0", "1/0")),
    *(f"Ethernet{each}" for each in ("0", "0/0", "0/1")),
    *(f"GigabitEthernet{each}" for each in ("0/0", "0/1", "0/2")),
    "ATM2/0",
)
CHASSIS = {
    "classic": Hardware("2811", ROUTER, "classic"),
    "hqf": Hardware("2811", ROUTER, "hqf", "15.1"),
    "catalyst": Hardware(
        "3750G", tuple(f"GigabitEthernet1/0/{each}" for each in range(1, 29)), version="12.2", family="switch"
    ),
}


@dataclass(frozen=True)
class Fragment:
    """Configuration lines as somebody would paste them."""

    device: str
    source: str
    """Document or lab on whose facts the fragment is based."""
    lacks: str | None
    """Unmodelled part; such a fragment is refused, with a message of the device."""
    text: str
    file: str


def _read_fragment(path: Path) -> list[Fragment]:
    _, *parts = re.split(r"(?m)^(?==== )", path.read_text())
    fragments = []
    for part in parts:
        head = HEAD.match(part)
        assert head is not None, part.splitlines()[0]
        fragments.append(Fragment(head[1], head[2], head[3], part[head.end() :], path.name))
    return fragments


FRAGMENTS = [fragment for path in sorted(FOLDER.glob("*.ios")) for fragment in _read_fragment(path)]


def _paste_fragment(fragment: Fragment) -> tuple[Device, str | None]:
    """Return the device that the fragment was pasted into, and its refusals."""
    device = Device(CHASSIS[fragment.device])
    try:
        apply_config(device, fragment.text, source=fragment.source)
    except IosError as refusal:
        return device, refusal.message
    return device, None


@pytest.mark.parametrize("name", sorted({fragment.file for fragment in FRAGMENTS}))
def test_fragment_is_accepted_unless_a_gap_is_named(name: str) -> None:
    wrong = []
    for fragment in (each for each in FRAGMENTS if each.file == name):
        device, refusal = _paste_fragment(fragment)
        if fragment.lacks is None and refusal is not None:
            wrong.append(refusal)
        elif fragment.lacks is not None and refusal is None:
            wrong.append(f"{fragment.source}: taken, and said to lack {fragment.lacks}")
        if refusal is None:
            compile_device(device)
            assert parse_config(render(device), device.hardware) == device, fragment.source
    assert not wrong, "\n".join(wrong)


def test_450_of_500_fragments_are_accepted_completely() -> None:
    texts = {fragment.text for fragment in FRAGMENTS}
    assert len(texts) == len(FRAGMENTS) >= 500
    assert sum(fragment.lacks is None for fragment in FRAGMENTS) >= 450


def test_pasted_lines_can_be_removed() -> None:
    for fragment in FRAGMENTS[:: 7 * every_nth(3)]:
        device, refusal = _paste_fragment(fragment)
        if refusal is None:
            before = render(Device(device.hardware))
            lines = undo_lines(before, render(device), device.hardware)
            apply_config(device, "\n".join(lines))
            assert render(device) == before, fragment.source
