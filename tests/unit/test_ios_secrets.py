"""Run folders contain no secret of a router."""

from __future__ import annotations

import pytest

from qoslab.ios.device_config.secret_lines import remove_secrets


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("enable secret 5 $1$abcd$HIDDEN", "enable secret 5"),
        ("enable password HIDDEN", "enable password"),
        ("enable password level 7 7 HIDDEN", "enable password level 7 7"),
        ("username lab privilege 15 password 0 HIDDEN", "username lab privilege 15 password 0"),
        ("username lab secret 9 HIDDEN", "username lab secret 9"),
        (" password 7 HIDDEN", " password 7"),
        ("snmp-server community HIDDEN RW 10", "snmp-server community"),
        ("snmp-server host 192.0.2.1 version 2c HIDDEN", "snmp-server host 192.0.2.1"),
        ("snmp-server user u g v3 auth sha HIDDEN priv aes 128 HIDDEN", "snmp-server user u g"),
        ("  key-string 7 HIDDEN", "  key-string 7"),
        (" ip ospf authentication-key HIDDEN", " ip ospf authentication-key"),
        (" ip ospf message-digest-key 1 md5 7 HIDDEN", " ip ospf message-digest-key 1 md5 7"),
        (" neighbor 192.0.2.1 password 7 HIDDEN", " neighbor 192.0.2.1 password 7"),
        (" ppp chap password 0 HIDDEN", " ppp chap password 0"),
        (" ppp pap sent-username u password 0 HIDDEN", " ppp pap sent-username u password 0"),
        ("crypto isakmp key HIDDEN address 192.0.2.1", "crypto isakmp key"),
        ("crypto isakmp key 6 HIDDEN address 192.0.2.1", "crypto isakmp key 6"),
        ("  pre-shared-key address 192.0.2.1 key HIDDEN", "  pre-shared-key address 192.0.2.1 key"),
        ("tacacs-server host 192.0.2.1 key 7 HIDDEN", "tacacs-server host 192.0.2.1 key 7"),
        ("radius-server key HIDDEN", "radius-server key"),
        (" key 7 HIDDEN", " key 7"),
        (" standby 1 authentication md5 key-string HIDDEN", " standby 1 authentication md5"),
        (" standby 1 authentication HIDDEN", " standby 1 authentication"),
        (" standby authentication HIDDEN", " standby authentication"),
        (" standby 1 authentication text HIDDEN", " standby 1 authentication text"),
        (" vrrp 1 authentication HIDDEN", " vrrp 1 authentication"),
        (" vrrp 1 authentication text HIDDEN", " vrrp 1 authentication text"),
        (" glbp 1 authentication md5 key-string 7 HIDDEN", " glbp 1 authentication md5"),
        (" ip nhrp authentication HIDDEN", " ip nhrp authentication"),
        (" set session-key inbound ah 256 HIDDEN", " set session-key inbound ah"),
        (" set session-key outbound esp 256 cipher HIDDEN", " set session-key outbound esp"),
        (" server-private 192.0.2.1 timeout 5 key HIDDEN", " server-private 192.0.2.1 timeout 5 key"),
        (" server-private 192.0.2.1 key 7 HIDDEN", " server-private 192.0.2.1 key 7"),
        (" client 192.0.2.1 server-key HIDDEN", " client 192.0.2.1 server-key"),
        (" authentication mode hmac-sha-256 HIDDEN", " authentication mode hmac-sha-256"),
        (" domain-password HIDDEN", " domain-password"),
        (" ospfv3 encryption ipsec spi 1001 esp null md5 0 HIDDEN", " ospfv3 encryption ipsec spi 1001"),
        (" ipv6 ospf authentication ipsec spi 500 md5 HIDDEN", " ipv6 ospf authentication ipsec spi 500"),
        (" encryption key 1 size 128bit 7 HIDDEN transmit-key", " encryption key 1 size 128bit 7"),
        ("snmp mib community-map HIDDEN engineid 0001", "snmp mib community-map"),
        (" key HIDDEN", " key"),
        (" key 20391", " key"),
    ],
)
def test_secrets_are_removed(line: str, kept: str) -> None:
    around = "hostname R1\n{}\nend\n"
    assert remove_secrets(around.format(line)) == around.format(f"{kept} <removed>")
    # As in a difference.
    assert remove_secrets(around.format(f"-{line}")) == around.format(f"-{kept} <removed>")


def test_password_of_a_url_is_removed() -> None:
    assert remove_secrets(" path ftp://lab:HIDDEN@192.0.2.1/r1") == " path ftp://lab:<removed>@192.0.2.1/r1"


@pytest.mark.parametrize("block", ["tacacs server T", "radius server R", "crypto isakmp client configuration group G"])
def test_keys_are_removed_and_key_chain_numbers_stay(block: str) -> None:
    chain = "key chain K\n key 1\n  key-string {}\n key 2\n"
    text = f"{chain}{block}\n address ipv4 192.0.2.1\n key {{}}\n{chain}end\n"
    kept = remove_secrets(text.format("HIDDEN", "20391", "HIDDEN"))
    assert kept == text.format(*3 * ["<removed>"])
    # A single line, as in a transcript, does not show which one it is.
    assert remove_secrets(" key 20391") == " key <removed>"


def test_non_secret_value_stays() -> None:
    text = (
        "service password-encryption\nkey chain K\n key 1\n!\nroute-map M permit 10\n set community 65000:1\n"
        "router bgp 1\n neighbor 192.0.2.1 send-community both\naaa authentication login default local\n"
        "policy-map P\n class class-default\n  police cir 1000000\nline vty 0 4\n login local\nend\n"
    )
    assert remove_secrets(text) == text
