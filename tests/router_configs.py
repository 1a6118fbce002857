"""Running configurations of routers, written for tests from public facts: 12.4, 15.x and IOS-XE, in many styles."""

from __future__ import annotations

SECRETS = (
    "s3cretCommunity",
    "0822455D0A16544541",
    "mERgrCBPVYqK.8ATKZ1Ah",
    "pr3sharedKey",
    "tacKey99",
    "chapWord",
    "ospfWord",
)
"""Secrets in the configurations; no output may have one."""

HEAD = """Building configuration...

Current configuration : 8191 bytes
!
! Last configuration change at 10:11:12 CET Mon Mar 3 2025 by admin
!
"""

MANAGEMENT = """service timestamps debug datetime msec
service timestamps log datetime msec
service password-encryption
no service pad
enable secret 5 $1$mERg$mERgrCBPVYqK.8ATKZ1Ah
aaa new-model
aaa group server tacacs+ TACS
 server name ACS1
aaa authentication login default group TACS local
aaa session-id common
clock timezone CET 1 0
no ip source-route
ip domain name example.net
ip name-server 192.0.2.53
username admin privilege 15 secret 5 $1$mERg$mERgrCBPVYqK.8ATKZ1Ah
ip ssh version 2
"""

CERTIFICATE = """crypto pki trustpoint TP-self-signed-1234567890
 enrollment selfsigned
 subject-name cn=IOS-Self-Signed-Certificate-1234567890
 revocation-check none
 rsakeypair TP-self-signed-1234567890
!
crypto pki certificate chain TP-self-signed-1234567890
 certificate self-signed 01
  3082022B 30820194 A0030201 02020101 300D0609 2A864886 F70D0101 05050030
  31312F30 2D060355 04031326 494F532D 53656C66 2D536967 6E65642D 43657274
  69666963 6174652D 31323334
  \tquit
"""

TAIL = """logging host 192.0.2.10
tacacs server ACS1
 address ipv4 192.0.2.11
 key 7 tacKey99
snmp-server community s3cretCommunity RO 99
snmp-server location Rack 7
snmp-server contact noc@example.net
access-list 99 permit 192.0.2.0 0.0.0.255
banner motd ^C
*** Authorised users only ***
interface of shame, policy-map of doom
^C
line con 0
 exec-timeout 5 0
 logging synchronous
line aux 0
line vty 0 4
 access-class 99 in
 password 7 0822455D0A16544541
 transport input ssh
line vty 5 15
 transport input none
ntp server 192.0.2.123
end
"""

EEM = """event manager applet IFDOWN
 event syslog pattern "LINK-3-UPDOWN"
 action 1.0 cli command "enable"
 action 2.0 syslog msg "an interface changed"
"""

IP_SLA = """track 10 ip sla 1 reachability
ip sla 1
 icmp-echo 192.0.2.129 source-interface {port}
 frequency 5
ip sla schedule 1 life forever start-time now
"""

VOICE = """voice service voip
 ip address trusted list
  ipv4 192.0.2.200
 allow-connections sip to sip
 sip
  bind control source-interface Loopback0
voice class codec 1
 codec preference 1 g711alaw
 codec preference 2 g729r8
voice-port 0/0/0
 signal groundStart
dial-peer voice 100 voip
 destination-pattern 9T
 session protocol sipv2
 session target ipv4:192.0.2.200
 voice-class codec 1
 dtmf-relay rtp-nte
 no vad
telephony-service
 max-ephones 10
 max-dn 20
 ip source-address 10.10.20.1 port 2000
"""

ZBF = """class-map type inspect match-any WEB-OUT
 match protocol http
 match protocol https
 match protocol dns
policy-map type inspect IN-OUT
 class type inspect WEB-OUT
  inspect
 class class-default
  drop log
zone security INSIDE
zone security OUTSIDE
zone-pair security IO source INSIDE destination OUTSIDE
 service-policy type inspect IN-OUT
"""

IPSEC = """crypto isakmp policy 10
 encr aes 256
 authentication pre-share
 group 14
crypto isakmp key pr3sharedKey address 198.51.100.1
crypto isakmp keepalive 10
crypto ipsec transform-set TS esp-aes 256 esp-sha-hmac
 mode transport
crypto ipsec profile VPN
 set transform-set TS
"""

CRYPTO_MAP = """crypto map CMAP 10 ipsec-isakmp
 set peer 198.51.100.1
 set transform-set TS
 match address VPN-TRAFFIC
"""

BGP = """router bgp 65010
 bgp log-neighbor-changes
 neighbor {peer} remote-as 65000
 neighbor {peer} password 7 0822455D0A16544541
 !
 address-family ipv4
  network 10.10.0.0 mask 255.255.0.0
  neighbor {peer} activate
  neighbor {peer} route-map OUT out
 exit-address-family
!
ip prefix-list MINE seq 5 permit 10.10.0.0/16
route-map OUT permit 10
 match ip address prefix-list MINE
"""

OSPF = """router ospf 1
 router-id 10.255.0.1
 area 0 authentication message-digest
 passive-interface default
 no passive-interface GigabitEthernet0/0
 network 10.0.0.0 0.255.255.255 area 0
"""

EIGRP = """router eigrp 100
 network 10.0.0.0
 no auto-summary
"""

LLQ = """class-map match-any VOICE
 match ip dscp ef
 match access-group name RTP
class-map match-any SIGNAL
 match ip dscp cs3 af31
class-map match-all BULK
 match protocol ftp
policy-map WAN-EDGE
 class VOICE
  priority percent 20
 class SIGNAL
  bandwidth percent 5
 class BULK
  bandwidth percent 10
  random-detect
 class class-default
  fair-queue
"""

LLQ_ACL = """ip access-list extended RTP
 remark voice bearer
 permit udp any any range 16384 32767
"""

XE_CHILD = """class-map match-any REALTIME
 match dscp ef cs5
class-map match-any VIDEO
 match dscp af41 af42
class-map match-any CRITICAL
 match dscp af31
 match protocol attribute business-relevance business-relevant
class-map match-any SCAVENGER
 match dscp cs1
policy-map CHILD
 class REALTIME
  priority level 1
  police cir percent 20
 class VIDEO
  bandwidth remaining ratio 30
  queue-limit 200 packets
 class CRITICAL
  bandwidth remaining ratio 40
  random-detect dscp-based
 class SCAVENGER
  bandwidth remaining ratio 1
 class class-default
  bandwidth remaining ratio 25
  fair-queue
  random-detect dscp-based
policy-map PARENT
 class class-default
  shape average {rate}
  service-policy CHILD
"""

MARK_IN = """class-map match-any LAN-VOICE
 match protocol rtp audio
 match ip dscp ef
class-map match-all LAN-WEB
 match access-group name WEB
policy-map LAN-IN
 class LAN-VOICE
  set dscp ef
 class LAN-WEB
  set ip dscp af21
  police 5000000 conform-action transmit exceed-action drop
 class class-default
  set dscp default
"""

WEB_ACL = """ip access-list extended WEB
 permit tcp 10.0.0.0 0.255.255.255 any eq www
 permit tcp any any eq 443
"""


def router_config(version: str, name: str, *parts: str, head: str = HEAD, tail: str = TAIL) -> str:
    """Return a running configuration with its usual further lines."""
    return f"{head}version {version}\n{MANAGEMENT}hostname {name}\n!\n" + "!\n".join(parts) + "!\n" + tail


def ethernet_port(name: str, *lines: str) -> str:
    """Return the block of an interface."""
    return f"interface {name}\n" + "".join(f" {line}\n" for line in lines)


def addressed_port(name: str, address: str, mask: str, *lines: str) -> str:
    """Return the block of an interface with an address."""
    return ethernet_port(name, f"ip address {address} {mask}", *lines)


SLASH24, SLASH30 = "255.255.255.0", "255.255.255.252"
DEFAULT = "ip route 0.0.0.0 0.0.0.0 {}\n"
LAN = addressed_port(
    "GigabitEthernet0/1", "10.10.10.1", SLASH24, "description LAN", "ip nat inside", "duplex auto", "speed auto"
)
NAT = (
    "ip nat inside source list 10 interface GigabitEthernet0/0 overload\naccess-list 10 permit 10.10.0.0 0.0.255.255\n"
)


def _classic() -> dict[str, str]:
    return {
        "3725-serial": router_config(
            "12.4",
            "R3725",
            "memory-size iomem 5\nip cef\n",
            LLQ,
            addressed_port("FastEthernet0/0", "10.1.1.1", SLASH24, "duplex auto", "speed auto"),
            addressed_port(
                *(
                    "Serial0/0",
                    "192.168.12.1",
                    SLASH30,
                    "bandwidth 512",
                    "encapsulation ppp",
                    "ppp authentication chap",
                ),
                *("ppp chap password 0 chapWord", "clock rate 512000", "service-policy output WAN-EDGE"),
            ),
            EIGRP,
            LLQ_ACL,
            "no ip http server\nip classless\n",
        ),
        "2811-multilink": router_config(
            "12.4",
            "BR-2811",
            LLQ,
            addressed_port("FastEthernet0/0", "10.10.10.1", SLASH24),
            addressed_port(
                *("Multilink1", "198.18.1.2", SLASH30, "ppp multilink", "ppp multilink group 1"),
                *("ppp multilink interleave", "service-policy output WAN-EDGE"),
            ),
            ethernet_port(
                "Serial0/0/0", "no ip address", "encapsulation ppp", "ppp multilink", "ppp multilink group 1"
            ),
            ethernet_port(
                "Serial0/1/0", "no ip address", "encapsulation ppp", "ppp multilink", "ppp multilink group 1"
            ),
            LLQ_ACL,
            DEFAULT.format("198.18.1.1"),
        ),
        "7206-atm": router_config(
            "12.4",
            "AGG7206",
            "class-map match-all GOLD\n match ip precedence 5\npolicy-map VC\n class GOLD\n  priority 256\n"
            " class class-default\n  fair-queue\n",
            ethernet_port("ATM1/0", "no ip address", "no atm ilmi-keepalive"),
            "interface ATM1/0.33 point-to-point\n ip address 192.168.33.1 255.255.255.252\n pvc 0/33\n"
            "  vbr-nrt 2000 2000\n"
            "  encapsulation aal5snap\n  service-policy output VC\n",
            addressed_port("FastEthernet0/0", "10.7.2.1", SLASH24),
            OSPF,
        ),
        "2621-car": router_config(
            "12.2",
            "OLD2621",
            addressed_port(
                *("FastEthernet0/0", "10.26.1.1", SLASH24),
                "rate-limit input access-group 101 8000000 1500000 2000000 conform-action transmit exceed-action drop",
            ),
            addressed_port(
                "Serial0/0", "192.168.26.1", SLASH30, "traffic-shape rate 256000 6400 6400 1000", "bandwidth 1544"
            ),
            "access-list 101 permit tcp any any eq www\naccess-list 101 deny ip any any\n",
            "router rip\n network 10.0.0.0\n",
        ),
        "3745-frame-relay": router_config(
            "12.3",
            "HUB3745",
            "policy-map FR\n class class-default\n  fair-queue\n",
            ethernet_port("Serial1/0", "no ip address", "encapsulation frame-relay", "frame-relay traffic-shaping"),
            "interface Serial1/0.102 point-to-point\n ip address 10.255.102.1 255.255.255.252\n"
            " frame-relay interface-dlci 102\n"
            "  class FRTS\n",
            "interface Serial1/0.103 point-to-point\n ip address 10.255.103.1 255.255.255.252\n"
            " frame-relay interface-dlci 103\n",
            addressed_port("FastEthernet0/0", "10.37.45.1", SLASH24),
            "map-class frame-relay FRTS\n frame-relay cir 128000\n frame-relay bc 1280\n service-policy output FR\n",
        ),
        "2811-channelised": router_config(
            "12.4",
            "E1-2811",
            "controller E1 0/0/0\n channel-group 0 timeslots 1-31\n",
            LLQ,
            addressed_port("Serial0/0/0:0", "172.20.0.1", SLASH30, "service-policy output WAN-EDGE"),
            addressed_port("FastEthernet0/0", "10.28.11.1", SLASH24, "ip policy route-map PBR"),
            LLQ_ACL,
            "route-map PBR permit 10\n set ip next-hop 172.20.0.2\n",
        ),
        "1841-queues": router_config(
            "12.4",
            "Q1841",
            addressed_port("FastEthernet0/0", "10.18.41.1", SLASH24),
            addressed_port(
                "Serial0/0/0", "172.21.0.1", SLASH30, "bandwidth 256", "priority-group 1", "clock rate 256000"
            ),
            "priority-list 1 protocol ip high tcp telnet\npriority-list 1 default low\n",
        ),
    }


def _fifteen() -> dict[str, str]:
    return {
        "1941-nat": router_config(
            "15.2",
            "CPE1941",
            CERTIFICATE,
            LLQ,
            "policy-map SHAPE10\n class class-default\n  shape average 10000000\n  service-policy WAN-EDGE\n",
            addressed_port(
                *("GigabitEthernet0/0", "203.0.113.10", "255.255.255.248", "description WAN", "ip nat outside"),
                *("ip access-group FROM-NET in", "service-policy output SHAPE10", "duplex auto", "speed 100"),
            ),
            LAN,
            NAT,
            LLQ_ACL,
            "ip access-list extended FROM-NET\n permit tcp any any established\n deny ip any any log\n",
            DEFAULT.format("203.0.113.9"),
        ),
        "2911-voice": router_config(
            "15.1",
            "VGW2911",
            VOICE,
            LLQ,
            ethernet_port("Loopback0", "ip address 10.255.29.11 255.255.255.255"),
            addressed_port(
                "GigabitEthernet0/0", "203.0.113.34", SLASH30, "service-policy output WAN-EDGE", "bandwidth 4000"
            ),
            ethernet_port("GigabitEthernet0/1", "no ip address"),
            addressed_port("GigabitEthernet0/1.10", "10.10.10.1", SLASH24, "encapsulation dot1Q 10"),
            addressed_port(
                "GigabitEthernet0/1.20", "10.10.20.1", SLASH24, "encapsulation dot1Q 20", "service-policy input LAN-IN"
            ),
            MARK_IN,
            LLQ_ACL,
            WEB_ACL,
            BGP.format(peer="203.0.113.33"),
        ),
        "881-pppoe": router_config(
            "15.4",
            "HOME881",
            "vpdn enable\n",
            "policy-map UP\n class VOIP\n  priority 512\n class class-default\n  fair-queue\npolicy-map DIALER-OUT\n"
            " class class-default\n  shape average 5000000\n  service-policy UP\nclass-map match-any VOIP\n"
            " match dscp ef\n",
            ethernet_port("FastEthernet0", "switchport access vlan 10", "no ip address"),
            ethernet_port("FastEthernet1", "no ip address"),
            ethernet_port(
                "FastEthernet4", "no ip address", "pppoe enable group global", "pppoe-client dial-pool-number 1"
            ),
            addressed_port("Vlan10", "192.168.10.1", SLASH24, "ip nat inside", "ip tcp adjust-mss 1412"),
            ethernet_port(
                *(
                    "Dialer1",
                    "mtu 1492",
                    "ip address negotiated",
                    "ip nat outside",
                    "encapsulation ppp",
                    "dialer pool 1",
                ),
                *(
                    "ppp chap hostname user@isp",
                    "ppp chap password 7 0822455D0A16544541",
                    "service-policy output DIALER-OUT",
                ),
            ),
            "ip nat inside source list 1 interface Dialer1 overload\naccess-list 1 permit 192.168.10.0 0.0.0.255\n",
            "dialer-list 1 protocol ip permit\nip route 0.0.0.0 0.0.0.0 Dialer1\n",
        ),
        "887-adsl": router_config(
            "15.1",
            "DSL887",
            "policy-map ATM-OUT\n class class-default\n  fair-queue\n",
            ethernet_port("ATM0", "no ip address", "no atm ilmi-keepalive"),
            "interface ATM0.1 point-to-point\n pvc 8/35\n  encapsulation aal5mux ppp dialer\n  dialer pool-member 1\n",
            ethernet_port("FastEthernet0", "no ip address"),
            addressed_port("Vlan1", "192.168.1.1", SLASH24),
            ethernet_port(
                "Dialer0",
                "ip address negotiated",
                "encapsulation ppp",
                "dialer pool 1",
                "ppp pap sent-username a password 0 chapWord",
            ),
            "ip route 0.0.0.0 0.0.0.0 Dialer0\n",
        ),
        "2911-gre": router_config(
            "15.7",
            "SPOKE2911",
            IPSEC,
            LLQ,
            "policy-map TUN\n class class-default\n  shape average 4000000\n  service-policy WAN-EDGE\n",
            addressed_port(
                *("Tunnel0", "10.254.0.2", SLASH30, "qos pre-classify", "tunnel source GigabitEthernet0/0"),
                *(
                    "tunnel destination 198.51.100.1",
                    "tunnel protection ipsec profile VPN",
                    "service-policy output TUN",
                ),
            ),
            addressed_port("GigabitEthernet0/0", "198.51.100.77", "255.255.255.0"),
            LAN,
            LLQ_ACL,
            "ip route 10.0.0.0 255.0.0.0 Tunnel0\nip route 198.51.100.1 255.255.255.255 198.51.100.254\n",
        ),
        "2901-dmvpn": router_config(
            "15.3",
            "DMVPN-HUB",
            IPSEC,
            "policy-map SPOKE-1M\n class class-default\n  shape average 1000000\n",
            addressed_port(
                *(
                    "Tunnel100",
                    "10.100.0.1",
                    SLASH24,
                    "ip nhrp authentication s3cretCommunity",
                    "ip nhrp network-id 100",
                ),
                *("ip nhrp map multicast dynamic", "ip nhrp map group S1 service-policy output SPOKE-1M"),
                *("tunnel source GigabitEthernet0/0", "tunnel mode gre multipoint"),
            ),
            addressed_port("GigabitEthernet0/0", "198.51.100.1", SLASH24, "ip nat outside"),
            LAN,
            EIGRP,
            DEFAULT.format("198.51.100.254"),
        ),
        "3945-crypto-map": router_config(
            "15.0",
            "VPN3945",
            IPSEC,
            CRYPTO_MAP,
            LLQ,
            addressed_port(
                "GigabitEthernet0/0", "198.51.100.9", SLASH24, "crypto map CMAP", "service-policy output WAN-EDGE"
            ),
            LAN,
            LLQ_ACL,
            "ip access-list extended VPN-TRAFFIC\n permit ip 10.10.0.0 0.0.255.255 10.20.0.0 0.0.255.255\n",
            DEFAULT.format("198.51.100.254"),
        ),
        "2921-hsrp-ospf": router_config(
            "15.6",
            "DIST2921",
            addressed_port(
                *("GigabitEthernet0/0", "10.40.0.2", SLASH24, "standby 1 ip 10.40.0.1", "standby 1 priority 110"),
                *("standby 1 preempt", "standby 1 authentication md5 key-string s3cretCommunity"),
            ),
            addressed_port(
                *("GigabitEthernet0/1", "10.41.0.1", SLASH30, "ip ospf message-digest-key 1 md5 ospfWord"),
                "ip ospf network point-to-point",
            ),
            OSPF,
            EEM,
            IP_SLA.format(port="GigabitEthernet0/1"),
        ),
        "iosv-ipv6": router_config(
            "15.9",
            "V6-LAB",
            "ipv6 unicast-routing\nclass-map match-any V6V\n match dscp ef\npolicy-map P6\n class V6V\n"
            "  priority 1000\n"
            " class class-default\n  fair-queue\n",
            addressed_port(
                *("GigabitEthernet0/0", "10.60.0.1", SLASH24, "ipv6 address 2001:DB8:60::1/64", "ipv6 enable"),
                *("ipv6 traffic-filter NOPE in",),
            ),
            addressed_port(
                "GigabitEthernet0/1",
                "10.61.0.1",
                SLASH24,
                "ipv6 address FE80::1 link-local",
                "service-policy output P6",
            ),
            "ipv6 access-list NOPE\n deny tcp any any eq 23\n permit ipv6 any any\n",
            "ipv6 route ::/0 2001:DB8:60::FFFF\n",
        ),
        "1921-cellular": router_config(
            "15.5",
            "LTE1921",
            'chat-script lte "" "AT!CALL1" TIMEOUT 30 "OK"\n',
            ethernet_port(
                "Cellular0/0/0", "ip address negotiated", "encapsulation slip", "dialer in-band", "dialer string lte"
            ),
            addressed_port("GigabitEthernet0/0", "10.19.21.1", SLASH24),
            "ip route 0.0.0.0 0.0.0.0 Cellular0/0/0\n",
        ),
    }


def _xe() -> dict[str, str]:
    return {
        "isr4331-edge": router_config(
            "16.9",
            "EDGE4331",
            CERTIFICATE,
            "platform qfp utilization monitor load 80\nno platform punt-keepalive disable-kernel-core\n",
            "license udi pid ISR4331/K9 sn FDO12345678\nlicense boot level appxk9\n",
            XE_CHILD.format(rate="50000000"),
            addressed_port(
                *("GigabitEthernet0/0/0", "203.0.113.66", SLASH30, "description to MPLS", "negotiation auto"),
                *("service-policy output PARENT", "ip flow monitor NETFLOW input"),
            ),
            addressed_port(
                "GigabitEthernet0/0/1", "10.43.31.1", SLASH24, "negotiation auto", "service-policy input LAN-IN"
            ),
            ethernet_port("GigabitEthernet0/0/2", "no ip address", "shutdown"),
            ethernet_port("GigabitEthernet0", "vrf forwarding Mgmt-intf", "ip address 192.0.2.20 255.255.255.0"),
            MARK_IN,
            WEB_ACL,
            BGP.format(peer="203.0.113.65"),
            "control-plane\n",
        ),
        "isr4451-zbf": router_config(
            "17.3",
            "FW4451",
            ZBF,
            IPSEC,
            XE_CHILD.format(rate="200m"),
            addressed_port(
                "GigabitEthernet0/0/0",
                "203.0.113.70",
                SLASH30,
                "zone-member security OUTSIDE",
                "service-policy output PARENT",
            ),
            addressed_port("GigabitEthernet0/0/1", "10.44.51.1", SLASH24, "zone-member security INSIDE"),
            EEM,
            DEFAULT.format("203.0.113.69"),
        ),
        "isr4431-serial": router_config(
            "16.12",
            "T1-4431",
            "license udi pid ISR4431/K9 sn FOC12345678\n",
            "controller T1 0/1/0\n framing esf\n channel-group 0 timeslots 1-24\n",
            XE_CHILD.format(rate="1400000"),
            addressed_port(
                "Serial0/1/0:0", "192.168.44.1", SLASH30, "service-policy output PARENT", "encapsulation ppp"
            ),
            addressed_port("GigabitEthernet0/0/0", "10.44.31.1", SLASH24),
        ),
        "c1111-vlans": router_config(
            "17.6",
            "C1111-SHOP",
            "license udi pid C1111-8P sn FGL12345678\nlicense boot level network-advantage\n"
            "spanning-tree extend system-id\nvlan internal allocation policy ascending\n",
            XE_CHILD.format(rate="20000000"),
            ethernet_port("GigabitEthernet0/0/0", "ip address dhcp", "ip nat outside", "service-policy output PARENT"),
            ethernet_port("GigabitEthernet0/0/1", "no ip address", "shutdown"),
            *(ethernet_port(f"GigabitEthernet0/1/{number}", "switchport access vlan 10") for number in range(4)),
            *(ethernet_port(f"GigabitEthernet0/1/{number}", "switchport mode trunk") for number in range(4, 8)),
            ethernet_port("Vlan1", "no ip address"),
            addressed_port("Vlan10", "10.11.11.1", SLASH24, "ip nat inside"),
            addressed_port("Vlan20", "10.11.12.1", SLASH24, "ip nat inside", "ip access-group GUEST in"),
            "ip access-list extended GUEST\n 10 deny ip any 10.0.0.0 0.255.255.255\n 20 permit ip any any\n",
            "ip nat inside source list NATTED interface GigabitEthernet0/0/0 overload\n"
            "ip access-list standard NATTED\n 10 permit 10.11.0.0 0.0.255.255\n",
        ),
        "c8200-sdwan-like": router_config(
            "17.9",
            "C8200-1",
            "license udi pid C8200-1N-4T sn FGL87654321\n",
            "vrf definition CORP\n rd 1:1\n !\n address-family ipv4\n exit-address-family\n",
            XE_CHILD.format(rate="percent 80"),
            addressed_port(
                "GigabitEthernet0/0/0", "203.0.113.74", SLASH30, "bandwidth 100000", "service-policy output PARENT"
            ),
            addressed_port("GigabitEthernet0/0/1", "10.82.0.1", SLASH24, "vrf forwarding CORP"),
            addressed_port("GigabitEthernet0/0/2", "10.82.0.1", SLASH24, "vrf forwarding GUEST"),
            "ip route vrf CORP 0.0.0.0 0.0.0.0 GigabitEthernet0/0/0 203.0.113.73 name default\n",
        ),
        "c8300-port-channel": router_config(
            "17.9",
            "C8300-DC",
            "license udi pid C8300-2N2S-4T2X sn FDO11112222\nplatform qos port-channel-aggregate 10\n",
            XE_CHILD.format(rate="900000000"),
            addressed_port("Port-channel10", "10.83.0.1", SLASH30, "service-policy output PARENT"),
            ethernet_port("GigabitEthernet0/0/0", "no ip address", "channel-group 10 mode active"),
            ethernet_port("GigabitEthernet0/0/1", "no ip address", "channel-group 10 mode active"),
            addressed_port("TenGigabitEthernet0/0/4", "10.83.10.1", SLASH24),
            OSPF,
        ),
        "c8000v-cloud": router_config(
            "17.6",
            "CLOUD-V",
            "license udi pid C8000V sn 9ABCDEFGHIJ\nlicense boot level network-premier addon dna-premier\n",
            IPSEC,
            XE_CHILD.format(rate="100000000"),
            addressed_port(
                *("Tunnel1", "10.200.1.1", SLASH30, "ip mtu 1400", "ip tcp adjust-mss 1360"),
                *(
                    "tunnel source GigabitEthernet1",
                    "tunnel destination 198.51.100.7",
                    "tunnel protection ipsec profile VPN",
                ),
                "service-policy output PARENT",
            ),
            ethernet_port("GigabitEthernet1", "ip address dhcp", "ip nat outside", "negotiation auto"),
            addressed_port("GigabitEthernet2", "10.200.10.1", SLASH24),
            "iox\napp-hosting appid guestshell\n app-vnic gateway1 virtualportgroup 0 guest-interface 0\n",
        ),
        "csr-copp": router_config(
            "16.12",
            "CSR-COPP",
            "class-map match-all COPP-ICMP\n match access-group name ICMP\npolicy-map COPP\n class COPP-ICMP\n"
            "  police 64000\n",
            "control-plane\n service-policy input COPP\n",
            addressed_port("GigabitEthernet1", "203.0.113.78", SLASH30),
            addressed_port("GigabitEthernet2", "10.160.0.1", SLASH24),
            "ip access-list extended ICMP\n permit icmp any any\n",
        ),
        "asr1001x-subif": router_config(
            "16.6",
            "PE-ASR",
            "mpls label protocol ldp\n",
            "policy-map CUST-50M\n class class-default\n  shape average 50000000\npolicy-map CUST-IN\n"
            " class class-default\n"
            "  police cir 50000000 bc 1562500 conform-action transmit exceed-action drop\n",
            ethernet_port("TenGigabitEthernet0/0/0", "no ip address", "mtu 9216"),
            *(
                addressed_port(
                    *(f"TenGigabitEthernet0/0/0.{vlan}", f"10.1.{vlan}.1", SLASH30, f"encapsulation dot1Q {vlan}"),
                    *("service-policy input CUST-IN", "service-policy output CUST-50M"),
                )
                for vlan in range(101, 105)
            ),
            addressed_port("GigabitEthernet0/0/0", "10.2.0.1", SLASH30, "mpls ip"),
            BGP.format(peer="10.2.0.2"),
        ),
        "asr1002-bng": router_config(
            "16.3",
            "BNG-1002",
            "bba-group pppoe GLOBAL\n virtual-template 1\n",
            "policy-map SUB\n class class-default\n  shape average 10000000\n",
            ethernet_port("Loopback1", "ip address 100.64.0.1 255.255.255.255"),
            ethernet_port("GigabitEthernet0/0/0", "no ip address", "pppoe enable group GLOBAL"),
            ethernet_port(
                "Virtual-Template1",
                "ip unnumbered Loopback1",
                "peer default ip address pool P",
                "service-policy output SUB",
            ),
            addressed_port("GigabitEthernet0/0/1", "10.102.0.1", SLASH30),
        ),
        "isr4221-no-qos": router_config(
            "16.9",
            "PLAIN4221",
            addressed_port("GigabitEthernet0/0/0", "203.0.113.82", SLASH30),
            addressed_port("GigabitEthernet0/0/1", "10.42.21.1", SLASH24),
            DEFAULT.format("203.0.113.81"),
        ),
        "isr1100-lte-only-vlan": router_config(
            "17.3",
            "ONE-ARM",
            ethernet_port("GigabitEthernet0/0/0", "no ip address", "shutdown"),
            addressed_port("Vlan1", "192.168.77.1", SLASH24, "service-policy output OUT"),
            ethernet_port("GigabitEthernet0/1/0"),
            "policy-map OUT\n class class-default\n  fair-queue\n",
        ),
        "isr4351-three-levels": router_config(
            "16.12",
            "DEEP4351",
            "class-map match-any EF\n match dscp ef\nclass-map match-all VLAN10\n match vlan 10\npolicy-map L3\n"
            " class EF\n"
            "  priority\n  police cir 1000000\n class class-default\n  bandwidth remaining percent 50\n"
            "policy-map L2\n class VLAN10\n"
            "  shape average 10000000\n  service-policy L3\n class class-default\n  shape average 20000000\n"
            "policy-map L1\n"
            " class class-default\n  shape average 100000000\n  service-policy L2\n",
            addressed_port("GigabitEthernet0/0/0", "203.0.113.86", SLASH30, "service-policy output L1"),
            addressed_port("GigabitEthernet0/0/1", "10.43.51.1", SLASH24),
        ),
    }


CONFIGS: dict[str, str] = {**_classic(), **_fifteen(), **_xe()}
"""Configurations by name."""
