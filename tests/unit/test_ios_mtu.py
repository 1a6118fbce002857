"""Maximum packet size of an interface, and TCP's maximum segment size, on the command line."""

from __future__ import annotations

import pytest
from fake_router import FakeRouter, type_lines
from ios_configured import configured_device, running_lines

from qoslab.errors import IosError
from qoslab.ios.compile import compile_device
from qoslab.ios.device_config.diff import configuration_lines_between
from qoslab.ios.model.device import Device
from qoslab.ios.model.mtu import ip_mtu, ipv6_mtu
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render

PORT = "interface FastEthernet0/1\n"


def sizes(device: Device, name: str = "FastEthernet0/1") -> tuple[int, int]:
    interface = device.interfaces[name]
    return ip_mtu(device, interface), ipv6_mtu(device, interface)


def test_mtu_values_are_printed_in_their_places() -> None:
    device = configured_device(
        f"{PORT} ipv6 mtu 1280\n ip tcp adjust-mss 1360\n ip mtu 1400\n mtu 1450\n description X\n"
    )
    text = render(device)
    assert [line for line in running_lines(device) if "mtu" in line or "mss" in line] == [
        "mtu 1450",
        "ip mtu 1400",
        "ip tcp adjust-mss 1360",
        "ipv6 mtu 1280",
    ]
    assert parse_config(text, device.hardware) == device
    assert sizes(device) == (1400, 1280)


def test_protocol_mtus_follow_the_interface_if_they_were_equal() -> None:
    """Change the MTU: by Cisco's reference "mtu" a change alters the MTU of IP if both had the same value."""
    device = configured_device(f"{PORT} mtu 1400\n")
    assert sizes(device) == (1400, 1400)
    apply_config(device, f"{PORT} ip mtu 1300\n mtu 1450\n")
    assert sizes(device) == (1300, 1450)
    apply_config(device, f"{PORT} mtu 1200\n")
    assert sizes(device) == (1200, 1280)
    assert "ip mtu" not in "".join(running_lines(device))
    apply_config(device, f"{PORT} no mtu\n")
    assert sizes(device) == (1500, 1500)


def test_default_is_not_printed() -> None:
    device = configured_device(f"{PORT} mtu 1500\n ip mtu 1500\n ipv6 mtu 1500\n")
    assert not any("mtu" in line for line in running_lines(device))


def test_subinterface_uses_the_mtu_of_its_port() -> None:
    sub = "interface FastEthernet0/1.10\n encapsulation dot1Q 10\n ip mtu 1400\n ip tcp adjust-mss 1300\n"
    device = configured_device(f"{PORT} mtu 1450\n{sub}")
    assert sizes(device, "FastEthernet0/1.10") == (1400, 1450)
    apply_config(device, f"{PORT} mtu 1000\n")
    assert sizes(device, "FastEthernet0/1.10") == (1000, 1280)
    part = compile_device(device)["interfaces"]["FastEthernet0/1"]["subinterfaces"]["FastEthernet0/1.10"]
    assert part["tcp_adjust_mss"] == 1300


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("mtu 1601", "% Invalid input"),
        ("mtu 63", "% Invalid input"),
        ("mtu 1600", "% Not supported: all lines accept packets of up to 1500 bytes"),
        ("ip mtu 67", "% Invalid input"),
        ("ip mtu 1501", "% Invalid input"),
        ("ipv6 mtu 1279", "% Invalid input"),
        ("ip tcp adjust-mss 499", "% Invalid input"),
        ("ip tcp adjust-mss 1461", "% Invalid input"),
    ],
)
def test_mtu_out_of_range_is_refused(line: str, reason: str) -> None:
    with pytest.raises(IosError, match=reason):
        apply_config(configured_device(""), f"{PORT} {line}\n")


def test_protocol_mtu_is_at_most_that_of_the_line() -> None:
    with pytest.raises(IosError, match="% Invalid input"):
        apply_config(configured_device(f"{PORT} mtu 1300\n"), f"{PORT} ip mtu 1400\n")


def test_data_plane_gets_the_segment_size() -> None:
    device = configured_device(f"{PORT} ip tcp adjust-mss 1360\n")
    assert compile_device(device)["interfaces"]["FastEthernet0/1"]["tcp_adjust_mss"] == 1360
    apply_config(device, f"{PORT} no ip tcp adjust-mss\n")
    assert "tcp_adjust_mss" not in compile_device(device)["interfaces"]["FastEthernet0/1"]


def test_mtu_lines_are_added_and_removed() -> None:
    text = f"{PORT} mtu 1450\n ip mtu 1400\n ip tcp adjust-mss 1360\n ipv6 mtu 1300\n"
    for wanted, present in (
        (configured_device(""), configured_device(text)),
        (configured_device(text), configured_device("")),
    ):
        apply_config(present, "\n".join(configuration_lines_between(wanted, present)))
        assert render(present) == render(wanted)


def test_show_commands_print_both_mtus() -> None:
    router = FakeRouter()
    apply_config(router.device, f"{PORT} mtu 1450\n ip mtu 1400\n ipv6 address 2001:DB8:1::1/64\n ipv6 mtu 1300\n")
    assert "  MTU 1450 bytes, BW 100000 Kbit" in type_lines(router, "show interfaces FastEthernet0/1\n")
    assert "  MTU is 1400 bytes" in type_lines(router, "show ip interface FastEthernet0/1\n")
    assert "  MTU is 1300 bytes" in type_lines(router, "show ipv6 interface FastEthernet0/1\n")
