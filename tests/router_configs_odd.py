"""Running configurations as people paste them, with prompts, pagers, wrapped lines and banners; and rare features."""

from __future__ import annotations

import textwrap

_WAN = """\
class-map match-any VOICE
 match dscp ef
policy-map CHILD
 class VOICE
  priority percent 20
 class class-default
  fair-queue
policy-map WAN
 class class-default
  shape average 8000000
  service-policy CHILD
"""
_PORTS = """\
interface GigabitEthernet0/0
 description to the provider
 ip address 198.51.100.2 255.255.255.252
 service-policy output WAN
!
interface GigabitEthernet0/1
 ip address 10.1.1.1 255.255.255.0
!
ip route 0.0.0.0 0.0.0.0 198.51.100.1
"""
_PLAIN = f"version 15.1\nhostname BR1\n!\nenable secret 5 $1$mERg$mERgrCBPVYqK.8ATKZ1Ah\n!\n{_WAN}!\n{_PORTS}end\n"


def _paged(text: str) -> str:
    """Return output with the echo of the command, a pager's prompts and backspaces, and CRLF."""
    lines = text.splitlines()
    pages = [lines[at : at + 22] for at in range(0, len(lines), 22)]
    pager = " --More-- " + "\b" * 10 + " " * 10 + "\b" * 10
    shown = f"\n{pager}".join("\n".join(page) for page in pages)
    return f"BR1>enable\nPassword: \nBR1#show running-config\n{shown}\nBR1#exit\n".replace("\n", "\r\n")


def _wrapped(text: str) -> str:
    """Return text wrapped at 80 columns like on a terminal, even inside words."""
    return "\n".join(
        "\n".join(line[at : at + 80] for at in range(0, max(len(line), 1), 80)) for line in text.split("\n")
    )


ODD: dict[str, str] = {
    "pager and crlf": _paged(_PLAIN),
    "no version, no hostname": _WAN + _PORTS,
    "byte order mark": "\ufeff" + _PLAIN.replace(" description to the provider", " description – “quoted”\t\x07"),
    "indented and numbered": "\n".join(f"{number:4}: {line}" for number, line in enumerate(_PLAIN.splitlines(), 1)),
    "mail quotation": "\n".join(f"> {line}" for line in _PLAIN.splitlines()),
    "banners": _PLAIN.replace(
        "!\nclass-map",
        "banner motd ^CC\n*** Authorised use only ***\ninterface GigabitEthernet9/9\n"
        " ip address 203.0.113.1 255.255.255.0\n"
        "policy-map FAKE\n^C\nbanner login #\nversion 12.2 #\nbanner exec \x03 one line \x03\n!\nclass-map",
        1,
    ),
    "menu and macro": _PLAIN.replace(
        "!\ninterface GigabitEthernet0/0",
        "macro name X\nswitchport mode access\n@\nmenu M title ^C\n Choose ^C\n!\ninterface GigabitEthernet0/0",
        1,
    ),
    "wrapped lines": _wrapped(
        _PLAIN.replace("to the provider", "of the line to the provider, longer than the eighty columns of a terminal")
    ),
    "t3": textwrap.dedent("""\
        version 12.4
        hostname T3
        controller T3 1/0
         clock source line
        !
        policy-map OUT
         class class-default
          fair-queue
        !
        interface Serial1/0
         bandwidth 44210
         ip address 192.0.2.1 255.255.255.252
         dsu bandwidth 44210
         serial restart-delay 0
         service-policy output OUT
        !
        interface FastEthernet0/0
         ip address 10.0.0.1 255.255.255.0
         duplex auto
         speed auto
        end
        """),
    "low bandwidth": "version 12.4\nhostname B\ninterface Serial0/0\n bandwidth 1\n"
    " ip address 10.0.0.1 255.255.255.252\n"
    "interface FastEthernet0/0\n ip address 10.1.1.1 255.255.255.0\n",
    "dmvpn hub": textwrap.dedent("""\
        version 16.9
        hostname HUB
        !
        vrf definition INET
         rd 1:1
         address-family ipv4
         exit-address-family
        !
        crypto keyring DMVPN vrf INET
         pre-shared-key address 0.0.0.0 0.0.0.0 key pr3sharedKey
        crypto ipsec transform-set AES esp-aes 256 esp-sha256-hmac
         mode transport
        crypto ipsec profile DMVPN
         set transform-set AES
        !
        class-map match-any VOICE
         match dscp ef
        policy-map SPOKE-CHILD
         class VOICE
          priority percent 30
         class class-default
          bandwidth remaining percent 100
        policy-map SPOKE-10M
         class class-default
          shape average 10000000
          service-policy SPOKE-CHILD
        policy-map SPOKE-50M
         class class-default
          shape average 50000000
          service-policy SPOKE-CHILD
        !
        interface Tunnel100
         bandwidth 100000
         ip address 10.255.0.1 255.255.255.0
         no ip redirects
         ip mtu 1400
         ip nhrp authentication s3cretCommunity
         ip nhrp map multicast dynamic
         ip nhrp network-id 100
         nhrp map group SPOKE-10M service-policy output SPOKE-10M
         ip nhrp map group SPOKE-50M service-policy output SPOKE-50M
         ip tcp adjust-mss 1360
         tunnel source GigabitEthernet0/0/0
         tunnel mode gre multipoint
         tunnel vrf INET
         tunnel protection ipsec profile DMVPN
        !
        interface GigabitEthernet0/0/0
         vrf forwarding INET
         ip address 203.0.113.2 255.255.255.252
         negotiation auto
        !
        interface GigabitEthernet0/0/1
         ip address 10.10.0.1 255.255.255.0
         negotiation auto
        !
        router eigrp DMVPN
         !
         address-family ipv4 unicast autonomous-system 100
          !
          af-interface Tunnel100
           hello-interval 20
          exit-af-interface
          !
          topology base
          exit-af-topology
          network 10.0.0.0
         exit-address-family
        !
        ip route vrf INET 0.0.0.0 0.0.0.0 203.0.113.1
        end
        """),
    "gre over ipsec": textwrap.dedent("""\
        version 15.2
        hostname SPOKE
        class-map match-any VOICE
         match dscp ef
        policy-map TUNNEL
         class VOICE
          priority 512
         class class-default
          fair-queue
        policy-map TUNNEL-SHAPER
         class class-default
          shape average 4000000
          service-policy TUNNEL
        interface Tunnel0
         ip address 172.16.0.2 255.255.255.252
         ip mtu 1400
         qos pre-classify
         tunnel source GigabitEthernet0/0
         tunnel destination 203.0.113.1
         tunnel protection ipsec profile P
         service-policy output TUNNEL-SHAPER
        interface GigabitEthernet0/0
         ip address 198.51.100.2 255.255.255.252
        interface GigabitEthernet0/1
         ip address 10.1.1.1 255.255.255.0
         ipv6 address 2001:DB8:1::1/64
         ipv6 enable
        ip route 0.0.0.0 0.0.0.0 Tunnel0
        ip route 203.0.113.1 255.255.255.255 198.51.100.1
        """),
    "mpls pe": textwrap.dedent("""\
        version 15.4
        hostname PE1
        ip vrf RED
         rd 65000:1
         route-target export 65000:1
         route-target import 65000:1
        !
        ip vrf BLUE
         rd 65000:2
        mpls label protocol ldp
        !
        class-map match-any EXP5
         match mpls experimental topmost 5
        class-map match-any GOLD
         match ip precedence 5
        policy-map CORE
         class EXP5
          priority percent 30
         class class-default
          random-detect
        policy-map CUSTOMER-IN
         class GOLD
          police cir 2000000 bc 62500
           conform-action set-mpls-exp-imposition-transmit 5
           exceed-action drop
         class class-default
          set mpls experimental imposition 0
        !
        interface Loopback0
         ip address 10.255.255.1 255.255.255.255
        interface GigabitEthernet0/1
         description core
         ip address 10.0.0.1 255.255.255.252
         mpls ip
         service-policy output CORE
        interface GigabitEthernet0/2.100
         encapsulation dot1Q 100
         ip vrf forwarding RED
         ip address 192.168.1.1 255.255.255.0
         service-policy input CUSTOMER-IN
        interface GigabitEthernet0/2.200
         encapsulation dot1Q 200
         ip vrf forwarding BLUE
         ip address 192.168.1.1 255.255.255.0
        !
        router bgp 65000
         address-family ipv4 vrf RED
          redistribute connected
         exit-address-family
        """),
    "etherswitch module": textwrap.dedent("""\
        version 12.4
        hostname OFFICE
        class-map match-all PHONES
         match access-group 110
        policy-map UP
         class PHONES
          priority 256
         class class-default
          fair-queue
        interface FastEthernet0/0
         ip address dhcp
         ip nat outside
         service-policy output UP
        """)
    + "".join(
        f"interface FastEthernet0/1/{port}\n switchport access vlan 10\n switchport voice vlan 20\n"
        for port in range(8)
    )
    + textwrap.dedent("""\
        interface Vlan10
         ip address 192.168.10.1 255.255.255.0
         ip nat inside
        interface Vlan20
         ip address 192.168.20.1 255.255.255.0
        access-list 110 remark "phones"
        access-list 110 permit udp 192.168.20.0 0.0.0.255 any range 16384 32767
        ip nat inside source list 1 interface FastEthernet0/0 overload
        """),
    "applets and keys": _PLAIN.replace(
        "!\ninterface GigabitEthernet0/0",
        "key chain OSPF\n key 1\n  key-string 7 0822455D0A16544541\n"
        'event manager applet BACKUP\n event timer cron cron-entry "0 3 * * *"\n action 1.0 cli command "enable"\n'
        ' action 2.0 cli command "policy-map WAN"\n action 3.0 cli command "class class-default"\n'
        "event manager policy tm_cli_cmd.tcl type user\nscripting tcl init flash:init.tcl\n"
        "crypto pki certificate chain CA\n certificate ca 01 nvram:CA#1CA.cer\n"
        "!\ninterface GigabitEthernet0/0",
        1,
    ),
    "pppoe dialer": textwrap.dedent("""\
        version 15.4
        hostname DSL
        class-map match-any VOICE
         match ip rtp 16384 16383
        policy-map LLQ
         class VOICE
          priority 300
         class class-default
          fair-queue
        policy-map SHAPE
         class class-default
          shape average 950000
          service-policy LLQ
        interface FastEthernet4
         no ip address
         pppoe enable group global
         pppoe-client dial-pool-number 1
        interface Vlan1
         ip address 192.168.1.1 255.255.255.0
         ip tcp adjust-mss 1452
        interface Dialer1
         mtu 1492
         bandwidth 1000
         ip address negotiated
         encapsulation ppp
         dialer pool 1
         ppp chap hostname user@isp
         ppp chap password 0 chapWord
         service-policy output SHAPE
        ip route 0.0.0.0 0.0.0.0 Dialer1
        """),
    "two addresses and no shutdown ports": _PLAIN.replace(
        " ip address 10.1.1.1 255.255.255.0\n",
        " ip address 10.1.1.1 255.255.255.0\n ip address 10.1.2.1 255.255.255.0 secondary\n",
    ),
    "syslog between lines": _PLAIN.replace(
        "!\ninterface GigabitEthernet0/1",
        "*Mar  1 00:12:01.123: %SYS-5-CONFIG_I: Configured from console by admin on vty0 (10.0.0.9)\n"
        "!\ninterface GigabitEthernet0/1",
        1,
    ),
}
"""Configurations by their peculiarity."""
