"""Results that a configuration line could change, by its first words."""

from __future__ import annotations

import re

from qoslab.ios.unsupported import OTHER_PROTOCOLS, OTHER_PROTOCOLS_OF_INTERFACES, OTHER_PROTOCOLS_OF_ROUTERS

NO_EFFECT = "nothing: it does not queue, forward or mark packets of the experiment"
FILTERS = "the packets that arrive: the device may drop some that pass here"
ENCRYPTED = "the bytes of encrypted packets, and the classes that match them after encryption"
PATH = "the path: routes here are static, along shortest paths or those of the input"
TABLES = "the path: all interfaces are in one table here, without labels and bridges"
NAT = "the addresses of packets, and the classes that match by address"
LINE = "the line: its framing and rate are those of the topology"
WORK = "the device's processing of a packet, not its queues"
MARKS = "the marks of packets, and the classes that match them later"
DEVICE = "packets of the device itself, and its reactions to failures"
TAGS = "the bytes of a tag, and frames that are switched between ports"
ENCAPSULATED = "the bytes of encrypted or encapsulated packets"
IPV6 = "IPv6 packets: the topology has one address per interface, static routes and no IPv6 load"
NOT_IP = "packets of other protocols than IP, which the topology does not have"
_OTHER_PROTOCOLS = rf"(?:{OTHER_PROTOCOLS}|{OTHER_PROTOCOLS_OF_ROUTERS}|{OTHER_PROTOCOLS_OF_INTERFACES})(?: |$)"
UNKNOWN_EFFECT = "unknown: compare with the device"

GENERAL_EFFECTS = frozenset(
    (NO_EFFECT, FILTERS, ENCRYPTED, PATH, TABLES, NAT, LINE, WORK, DEVICE, TAGS, ENCAPSULATED, IPV6, NOT_IP)
)
"""Effects of lines without QoS."""

_BLOCKS: tuple[tuple[str, str], ...] = (
    ("no ip routing", PATH),
    ("no ip cef *$", WORK),
    ("no (?:mls |platform )?qos |no auto qos", MARKS),
    ("ip nbar (?:port-map|custom|pdlm|attribute)", "the packets of classes with `match protocol`"),
    ("ip wccp|ip cef load-sharing", PATH),
    ("spd ", DEVICE),
    (
        "(?:control-plane|redundancy|ip cef)$|multilink bundle-name|ip cef |ip tcp |ip bgp-community"
        "|spanning-tree extend|crypto (?:isakmp|ikev2|mib|engine|logging|ctcp|call)",
        NO_EFFECT,
    ),
    ("interface Tunnel", "the path and the bytes of packets in the tunnel"),
    (
        "interface Loopback|interface Null|interface Virtual|interface NVI|interface Async|interface Group-Async"
        "|interface Service-Engine|interface Embedded-Service|interface AppNav|interface Analysis|interface ucse",
        NO_EFFECT,
    ),
    ("crypto pki|crypto key|crypto ca|key chain|key config", NO_EFFECT),
    ("crypto |keyring ", ENCRYPTED),
    (
        "router |address-family|route-map |ip prefix-list|ip as-path|ip community|ip extcommunity|ip pim|ip multicast"
        "|ip mroute|ip bgp|ip msdp|ip igmp|ipv6 router|ipv6 prefix-list|bfd|ip sdr|ip policy|ip local policy",
        PATH,
    ),
    ("ip route|ipv6 route|ip default-|ip nhrp", "the path: only routes between the subnets of the topology are used"),
    ("ip nat|nat64", NAT),
    (
        "ip access-list|access-list|ipv6 access-list|mac access-list|object-group|ip inspect|zone|ip ips|ip urlfilter"
        "|class-map type inspect|policy-map type inspect|parameter-map|ip reflexive|ip verify|ip access-group",
        FILTERS,
    ),
    ("class-map|policy-map|table-map|ip nbar", "nothing: no interface of the topology uses it"),
    (
        "control-plane|ip sla|track |event manager|standby|vrrp|glbp|redundancy|fhrp|rtr ",
        DEVICE,
    ),
    ("vrf |ip vrf|mpls|l2vpn|l2tp|segment-routing|pseudowire|bridge|l2 |xconnect|ethernet ", TABLES),
    ("vlan |spanning-tree|vtp |ip dhcp snooping|vlan-|switch", TAGS),
    (
        "dial-peer|voice|telephony-service|ephone|ccm|sccp|mgcp|gateway|sip-ua|call |num-exp|credentials|gatekeeper"
        "|dspfarm|dsp|voice-port|application|translation|isdn|stcapp|sip|h323|cme|presence|hunt|max-",
        "nothing: calls are traffic of the experiment",
    ),
    (
        "ip cef|ip flow|flow |monitor session|scheduler|platform qos|ipv6 cef|ip tcp|ip wccp|ip accounting|sampler|et-",
        WORK,
    ),
    ("platform hardware throughput", "the total rate of the device, which its license limits"),
    ("ip rsvp|qos |auto qos|mls qos|ip header-compression|hqf|random-detect|priority-list|queue-list", "the queueing"),
    (
        "multilink|dialer|map-class|frame-relay|controller|modem|chat-script|ppp|vpdn|bba-group|username .* dial|async"
        "|cellular|lte|port-channel",
        "the line: its rate, its delay and the order of packets",
    ),
    ("ipv6 unicast-routing|ipv6 ", IPV6),
    (_OTHER_PROTOCOLS, NOT_IP),
    (
        "version|hostname|boot|service|logging|aaa|radius|tacacs|enable|user|privilege|clock|ntp|sntp|snmp|line |banner"
        "|license|archive|alias|ip |no |security|login|netconf|restconf|telemetry|diagnostic|memory|transport|hw-module"
        "|card|end|exception|warm|errdisable|file|power|subscriber|multi|parser|process|resource|default|macro|mac|dot11"
        "|arp|time-range|menu|rlm|tg|mop|snapshot|boomerang|gw-accounting|kron|cns|call-home|wsma|guestshell|app-hosting|iox|avb|ptp|stack|udld|quit|exit|config-register"
        "|smart|software|tftp|buffers|mmi|network-clock|template|dot1x|auth|access-session|device-|identity|profile"
        "|prompt|lldp|cdp|environment|upgrade|facility|sdm|rep |cable|slot|subslot|module|utd|umbrella|sdwan"
        "|certificate|platform|remote|set |location|shell|configuration|do-|virtual|csdb|secure|crashinfo|rmon|key "
        "|partition|printer|pnp|cef |cts |nmsp|kerberos|mab |isis display|media-proxy|per-call|http|ivr|eou |scripting"
        "|diameter|monitor event|xmpp|bulkstat|webvpn|wlccp|domain|downward|bsd-client|ipc |metadata|passthru",
        NO_EFFECT,
    ),
)
"""Effects of lines by the beginning of their block."""
_OF_INTERFACE: tuple[tuple[str, str], ...] = (
    ("bgp-policy (?:source|destination)", MARKS),
    (
        "(?:duplex full|full-duplex)$|ppp (?:authentication|chap|pap|ipcp)|dialer-group|bgp-policy accounting|h323",
        NO_EFFECT,
    ),
    ("duplex half|half-duplex|bundle-enable|medium|ethernet oam|ssid|encryption mode|station-role|channel |rts", LINE),
    ("mka|macsec|cts ", ENCAPSULATED),
    (
        "description|snmp|logging|load-interval|cdp|lldp|shutdown|negotiation auto|duplex auto|speed auto|media|mdix"
        "|carrier|ntp|ip dhcp|ip helper|ip broadcast|ip directed|ip mask|ip redirects|ip unreachables|ip proxy|ip nbar"
        "|ip domain|mop|cellular|no-alarm|alarm|macro|ip icmp|ip gratuitous|arp|power|udld|dot1x|authentication|ip dns"
        "|history|transmit-interface|vtp|ip local-proxy|ip irdp|hold-time|service-module|ip device",
        NO_EFFECT,
    ),
    (
        "ip access-group|ipv6 traffic-filter|zone-member|ip inspect|ip verify|ip ips|ip admission|ip urlfilter|storm"
        "|switchport port-sec|service-policy type",
        FILTERS,
    ),
    ("ip nat|nat64", NAT),
    ("crypto |tunnel |qos pre-classify|ip gre", ENCAPSULATED),
    ("(?:ip )?vrf ", TABLES),
    (
        "ip policy|standby|vrrp|glbp|ip ospf|ip eigrp|ip pim|ip rip|ip igmp|ip summary|ip router|ip auth"
        "|bfd|ip hello|ip hold|ip bandwidth|ip split|ip next-hop|ip nhrp|ip bgp|isis|mpls|ip wccp|ip multicast|backup"
        "|track"
        "|delay|ip dampening|dampening|ip load|mac-address",
        PATH,
    ),
    ("ipv6|ospfv3", IPV6),
    (
        "encapsulation dot1|encapsulation isl|encapsulation default|switchport|spanning|channel-|bridge|service inst"
        "|rewrite|vlan|lacp|port-channel|xconnect|l2protocol|dot1q tunneling",
        TAGS,
    ),
    (
        "encapsulation|ppp|dialer|pppoe|multilink|frame-relay|clock|keepalive|isdn|pvc|protocol|atm|vbr|ubr|cbr|dsl"
        "|invert|crc|framing|linecode|cablelength|serial|down-when|oam|inarp|create|async|peer|operating|dsu|scramble"
        "|compress|ip rtp|ip tcp header|physical|line|fax|t1|e1|map-group|cdp",
        LINE,
    ),
    ("ip flow|flow|ip cef|ip route-cache|ip accounting|ip virtual|performance|ip tcp|sampler|plim|media-", WORK),
    ("speed|duplex|negotiation|auto(?! qos)|bandwidth|mtu|ip mtu|flowcontrol", "the rate or the size of packets"),
    (_OTHER_PROTOCOLS, NOT_IP),
    ("ip address|ip unnumbered", "a subnet that the topology does not have"),
    (
        "service-policy|rate-limit|traffic-shape|random|priority|custom|hold|tx-|qos|fair|max-reserved|trust|mls|account"
        "|wrr|srr|queue|ip rsvp|auto qos",
        "the queueing of the interface",
    ),
    ("ip ", NO_EFFECT),
)
"""Effects of the lines of an interface by their beginning."""


def _compile_patterns(table: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(rf"(?:{beginnings})"), effect) for beginnings, effect in table)


_BY_BLOCK, _BY_LINE = _compile_patterns(_BLOCKS), _compile_patterns(_OF_INTERFACE)


def effect_of_block(head: str) -> str:
    """Return the effect of the lines of a block."""
    return next((effect for pattern, effect in _BY_BLOCK if pattern.match(head)), UNKNOWN_EFFECT)


def effect_of_line(text: str) -> str:
    """Return the effect of a line of an interface; its `no` form has the same effect."""
    if text == "no ip address":
        return NO_EFFECT
    bare = text.removeprefix("no ").strip()
    return next((effect for pattern, effect in _BY_LINE if pattern.match(bare)), UNKNOWN_EFFECT)


WORDS = frozenset(
    re.findall(r"[A-Za-z][A-Za-z0-9-]+", " ".join(part for table in (_BLOCKS, _OF_INTERFACE) for part, _ in table))
)
"""Words of commands in the tables."""
