"""Tunnels of a pasted configuration: the bytes that they add, and the packet sizes that policies below them count."""

from __future__ import annotations

import pytest

from qoslab.policy.answer import answer_policy
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.policy.render import answer_text
from qoslab.policy.tunnels import Tunnel, find_tunnels
from qoslab.trial.answer import PolicyTrial, try_policy
from qoslab.trial.demand import parse_traffic
from qoslab.trial.edge import find_edge
from qoslab.trial.simulate import simulate

TRANSFORMS = """\
crypto ipsec transform-set TS {transforms}
{mode}crypto ipsec profile P
 set transform-set TS
"""
PORT = """\
version 17.6
{crypto}class-map match-all VOICE
 match access-group name RTP
policy-map CHILD
 class VOICE
  priority
  police cir 1000000
 class class-default
  fair-queue
policy-map SHAPE
 class class-default
  shape average 2000000
  service-policy CHILD
interface Tunnel1
{tunnel} tunnel source 192.0.2.1
 tunnel destination 192.0.2.9
{on_tunnel}interface GigabitEthernet0/0/0
 ip address 192.0.2.1 255.255.255.252
{on_port}ip access-list extended RTP
 permit udp any any range 16384 32767
"""
ETHERNET_BYTES = 214
"""Voice packet with the header that the class of the trial counts."""
OUTPUT = " service-policy output SHAPE\n"
PROTECTED = " tunnel protection ipsec profile P\n"


def tunnel_configuration(
    *, transforms: str = "", transport: bool = False, tunnel: str = "", below: bool = False
) -> str:
    mode = " mode transport\n" if transport else ""
    crypto = TRANSFORMS.format(transforms=transforms, mode=mode) if transforms else ""
    tunnel += PROTECTED if transforms else ""
    on_tunnel, on_port = ("", OUTPUT) if below else (OUTPUT, "")
    return PORT.format(crypto=crypto, tunnel=tunnel, on_tunnel=on_tunnel, on_port=on_port)


def parse_tunnel(text: str) -> Tunnel:
    [found] = find_tunnels(read_configuration(text))
    return found


def try_tunnel(text: str, traffic: str) -> PolicyTrial:
    edge = find_edge(read_configuration(text), None, None)
    return try_policy(edge, parse_traffic(traffic), (), simulate, seconds=5, rtt_s=0.02)


@pytest.mark.parametrize(
    ("transforms", "transport", "tunnel", "packet", "total"),
    [
        ("", False, "", 200, 224),
        ("", False, " tunnel key 7\n", 200, 228),
        ("", False, " tunnel mode ipip\n", 200, 220),
        # Cisco, Voice and Video Enabled IPsec VPN design guide: G.729 and G.711 in GRE and 3DES/SHA.
        ("esp-3des esp-sha-hmac", False, "", 60, 136),
        ("esp-3des esp-sha-hmac", False, "", 200, 280),
        # By hand: GRE 4, padding to 16 with the two bytes of the trailer, ESP 8, vector 16, SHA-1 12, IP 20.
        ("esp-aes 256 esp-sha-hmac", True, "", 200, 208 + 8 + 16 + 12 + 20),
        ("esp-gcm 256", False, " tunnel mode ipsec ipv4\n", 1400, 1404 + 8 + 8 + 16 + 20),
    ],
)
def test_packets_in_a_tunnel_have_its_headers(
    transforms: str, transport: bool, tunnel: str, packet: int, total: int
) -> None:
    found = parse_tunnel(tunnel_configuration(transforms=transforms, transport=transport, tunnel=tunnel))
    assert packet + found.overhead_bytes(packet) == total
    assert found.source == "GigabitEthernet0/0/0"


def test_indentation_changes_nothing_about_a_tunnel() -> None:
    text = tunnel_configuration(transforms="esp-aes 256 esp-sha256-hmac", transport=True)
    bare = "\n".join(line.strip() for line in text.splitlines())
    assert parse_tunnel(bare) == parse_tunnel(text)


def test_policy_shows_the_bytes_that_a_tunnel_adds() -> None:
    text = " ".join(answer_text(answer_policy(tunnel_configuration(transforms="esp-3des esp-sha-hmac"))).split())
    assert "GRE over IPv4 and IPsec in tunnel mode (esp-3des esp-sha-hmac) adds 74 to 81 bytes" in text
    assert "counts 280: 2 Mb/s carry 1.429 Mb/s of such packets" in text
    below = " ".join(answer_text(answer_policy(tunnel_configuration(below=True))).split())
    assert "Tunnel1: GRE over IPv4 adds 24 bytes" in below
    assert "counts 238: 2 Mb/s carry 1.681 Mb/s" in below


def test_classes_of_the_port_see_inner_headers_with_pre_classify_only() -> None:
    for tunnel, codes in (("", ["class-behind-tunnel"]), (" qos pre-classify\n", [])):
        text = tunnel_configuration(tunnel=tunnel, below=True)
        answered = answer_policy(text)
        assert [each.code for each in answered.findings if each.code == "class-behind-tunnel"] == codes
        assert not any(each.text == "qos pre-classify" for each in answered.ignored)
        [voice] = try_tunnel(text, "voice 5").variants[0].kinds
        assert voice.path[-1] == ("class-default" if codes else "VOICE")


def test_shaper_passes_fewer_packets_in_a_tunnel() -> None:
    """Shape at 2 Mb/s: a packet of 200 bytes is 214 on Ethernet, 238 below GRE and 280 in GRE and IPsec."""
    esp = try_tunnel(tunnel_configuration(transforms="esp-3des esp-sha-hmac"), "voice 40 dscp default port 4000")
    gre = try_tunnel(tunnel_configuration(below=True), "voice 40 dscp default port 4000")
    for trial, counted in ((esp, 200 + 78), (gre, 238)):
        assert trial.variants[0].classes[0].sent_bps == pytest.approx(2_000_000 * ETHERNET_BYTES / counted, rel=0.005)


def test_port_with_other_packets_is_tried_without_the_tunnel() -> None:
    text = tunnel_configuration(below=True).replace(" service-policy", " ip nat outside\n service-policy")
    trial = try_tunnel(text, "voice 5")
    assert any("also carries packets outside Tunnel1" in each for each in trial.notes)
    assert trial.variants[0].kinds[0].path[-1] == "VOICE"


@pytest.mark.parametrize(
    ("tunnel", "tunnels"),
    [
        (" tunnel mode mpls traffic-eng\n", 0),
        (" shutdown\n", 0),
        (" tunnel mode\n tunnel protection ipsec profile\n", 1),
    ],
)
def test_tunnels_without_ip_encapsulation_add_no_bytes(tunnel: str, tunnels: int) -> None:
    text = tunnel_configuration(tunnel=tunnel)
    assert len(find_tunnels(read_configuration(text))) == tunnels
    assert ("of such packets" in answer_text(answer_policy(text))) == bool(tunnels)


def test_unknown_transform_set_is_marked() -> None:
    text = tunnel_configuration(transforms="esp-3des esp-sha-hmac").replace("set transform-set TS", "set pfs group14")
    assert "(esp-aes esp-sha-hmac, default assumed?) adds 62 to 77 bytes" in " ".join(
        answer_text(answer_policy(text)).split()
    )


def test_release_with_hqf_counts_its_greatest_overhead() -> None:
    text = tunnel_configuration(transforms="esp-aes 256 esp-sha512-hmac").replace("version 17.6", "version 15.1")
    trial = try_tunnel(text, "voice 40 dscp default port 4000")
    assert any("counts at most 63 of them" in each for each in trial.notes)
    sent = 2_000_000 * ETHERNET_BYTES / (ETHERNET_BYTES + 63)
    assert trial.variants[0].classes[0].sent_bps == pytest.approx(sent, rel=0.005)


CRYPTO_MAP = """\
version 17.6
crypto ipsec transform-set TS {transforms}
 mode {mode}
crypto dynamic-map DYN 10
 set transform-set TS
crypto map M 10 ipsec-isakmp{dynamic}
 set peer 203.0.113.9
 set transform-set TS
 match address VPN
{pre_classify}policy-map SHAPE
 class class-default
  shape average 2000000
interface Tunnel1
 tunnel source GigabitEthernet0/0/0
 tunnel destination 203.0.113.9
interface GigabitEthernet0/0/0
 ip address {address} 255.255.255.252
 crypto map M
 service-policy output SHAPE
ip access-list extended VPN
 permit {protocol} any any
"""


def crypto_map(**changed: str) -> str:
    usual = {"transforms": "esp-aes 256 esp-sha-hmac", "mode": "tunnel", "dynamic": "", "pre_classify": ""}
    return CRYPTO_MAP.format(**{**usual, "address": "192.0.2.1", "protocol": "ip", **changed})


@pytest.mark.parametrize(
    ("changed", "title", "packet", "added"),
    [
        # IP, SPI and sequence number, initialization vector, padding to 16 bytes with the trailer, authentication data.
        ({}, "IPsec in tunnel mode (esp-aes 256 esp-sha-hmac)", 200, 20 + 8 + 16 + 6 + 2 + 12),
        ({"mode": "transport"}, "IPsec in tunnel mode (esp-aes 256 esp-sha-hmac)", 200, 64),
        ({"address": "10.0.0.1"}, "(esp-aes 256 esp-sha-hmac) in UDP (NAT traversal)", 200, 64 + 8),
        ({"transforms": "esp-3des esp-md5-hmac"}, "(esp-3des esp-md5-hmac)", 1400, 20 + 8 + 8 + 6 + 2 + 12),
        ({"dynamic": " dynamic DYN"}, "IPsec in tunnel mode (esp-aes 256 esp-sha-hmac)", 200, 64),
    ],
)
def test_crypto_map_adds_its_headers_and_padding(changed: dict[str, str], title: str, packet: int, added: int) -> None:
    found = [each for each in find_tunnels(read_configuration(crypto_map(**changed))) if each.ipsec is not None]
    assert len(found) == 1 and found[0].name == "crypto map M" and found[0].source == "GigabitEthernet0/0/0"
    assert title in found[0].title and found[0].overhead_bytes(packet) == added


def test_crypto_map_for_gre_is_around_the_tunnel() -> None:
    for mode, added in (("transport", 24 + 8 + 16 + 2 + 2 + 12), ("tunnel", 24 + 20 + 8 + 16 + 14 + 2 + 12)):
        [found] = find_tunnels(read_configuration(crypto_map(protocol="gre", mode=mode)))
        assert found.name == "Tunnel1" and f"GRE over IPv4 and IPsec in {mode} mode" in found.title
        assert found.overhead_bytes(200) == added


def test_policy_counts_the_bytes_of_a_crypto_map() -> None:
    text = " ".join(answer_text(answer_policy(crypto_map(pre_classify=" qos pre-classify\n"))).split())
    assert "crypto map M: IPsec in tunnel mode (esp-aes 256 esp-sha-hmac) adds 58 to 73 bytes" in text
    assert "counts 278: 2 Mb/s carry 1.439 Mb/s of such packets" in text


def test_flexvpn_template_is_a_tunnel() -> None:
    text = tunnel_configuration(transforms="esp-gcm 256", tunnel=" tunnel mode ipsec ipv4\n", below=True)
    [found] = find_tunnels(
        read_configuration(text.replace("interface Tunnel1", "interface Virtual-Template1 type tunnel"))
    )
    assert (found.name, found.source, found.min_overhead_bytes) == ("Virtual-Template1", "GigabitEthernet0/0/0", 54)


def test_each_group_of_spokes_has_its_policy() -> None:
    hub = " nhrp map group A service-policy output SHAPE\n ip nhrp map group B service-policy output CHILD\n"
    answered = answer_policy(tunnel_configuration(tunnel=hub))
    groups = [(each.interface, each.policy) for each in answered.policies]
    assert groups == [("Tunnel1 group A", "SHAPE"), ("Tunnel1 group B", "CHILD"), ("Tunnel1", "SHAPE")]
    assert "counts 224" in " ".join(answered.policies[0].tunnel_notes)


def test_long_line_is_not_joined_with_the_next_command() -> None:
    name = "RS-GROUP-" + "0" * 10
    long = f" ip nhrp map group {name} service-policy output {'P' * (80 - 50 - len(name) + 7)}"
    long = long[:80].ljust(80, "Q")
    text = tunnel_configuration(tunnel=f"{long}\n nhrp map group B service-policy output SHAPE\n")
    assert "Tunnel1 group B" in [each.interface for each in answer_policy(text).policies]


@pytest.mark.parametrize(
    ("mode", "headers"),
    [
        ("sdwan", "IP, UDP, ESP and label headers as the controller selects"),
        ("mpls traffic-eng", "MPLS labels"),
        ("vxlan ipv4", "headers"),
    ],
)
def test_headers_of_unknown_length_are_noted_at_the_tunnel_and_its_port(mode: str, headers: str) -> None:
    tunnel = f" tunnel mode {mode}\n service-policy output SHAPE\n"
    text = PORT.format(crypto="", tunnel=tunnel, on_tunnel="", on_port=" service-policy output SHAPE\n")
    found = answer_policy(text).policies
    assert {each.interface for each in found} == {"Tunnel1", "GigabitEthernet0/0/0"}
    for each in found:
        assert each.tunnel_notes == (f"Tunnel1: mode {mode} adds {headers}, whose bytes are not counted here",)


def test_tunnel_notes_include_the_bytes_of_overhead_accounting() -> None:
    plain = tunnel_configuration(below=True)
    counted = plain.replace("shape average 2000000", "shape average 2000000 account user-defined 28")
    notes = [answer_policy(each).policies[0].tunnel_notes[1] for each in (plain, counted)]
    assert [note.partition(":")[0] for note in notes] == [
        "a voice packet of 200 bytes (G.711, 20 ms) counts 238",
        "a voice packet of 200 bytes (G.711, 20 ms) counts 266",
    ]


def test_tunnel_is_tried_on_the_line_of_its_source() -> None:
    text = tunnel_configuration().replace(" tunnel source 192.0.2.1", " bandwidth 2000\n tunnel source 192.0.2.1")
    assert answer_policy(text).policies[0].line_source == "GigabitEthernet0/0/0 below Tunnel1"
    trial = try_tunnel(text.replace("  shape average 2000000\n", "  fair-queue\n"), "voice 5")
    assert trial.line_bps == 1_000_000_000
