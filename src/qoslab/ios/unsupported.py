"""IOS commands that affect forwarding and are not modelled, or that the software lacks: refused with the reason."""

from __future__ import annotations

from qoslab.ios.command_families import parse_families

TABLES = "tables that map marks are not supported"

OTHER_PROTOCOLS = (
    "appletalk|clns|decnet|dlsw|ipx|netbios|source-bridge|vines|x25|xns|apollo|smrp|tarp"
    "|bstun|stun|sdllc|qllc|fras|lnm|ncia|sna|dspu|alps|nls|lat"
)
"""First words of commands of other protocols than IP, as alternatives; the next two lists are of one mode each."""
OTHER_PROTOCOLS_OF_ROUTERS = "rsrb|locaddr-priority-list|sap-priority-list|tn3270|translate|xot"
OTHER_PROTOCOLS_OF_INTERFACES = "llc2|lapb|sdlc|locaddr-priority|sap-priority"

REFUSED = parse_families(
    f"""
[config]
only static routes are supported: no routing protocol runs
    >router (ospf|eigrp|bgp|rip|isis|odr|iso-igrp|mobile|lisp) [<rest:line>]
    >route-map <rest:line>
    ip (prefix-list|as-path|community-list|extcommunity-list) [<rest:line>]
    ip (default-network|multicast-routing|pim|mroute|msdp) [<rest:line>]
    ip (igmp|mobile|sap|summer) [<rest:line>]
    >ipv6 router <rest:line>
    ipv6 (prefix-list|multicast-routing|pim|mld) [<rest:line>]
addresses are not translated
    ip nat <rest:line>
packets are routed by destination only
    ip local policy <rest:line>
there is one routing table
    ip route vrf <rest:line>
addresses are not learned
    ip route <prefix:address> <mask:mask> dhcp [<rest:line>]
packets are not encrypted
    >crypto (isakmp|ipsec|map|dynamic-map|gdoi|ikev2|keyring|engine|ctcp|call|logging|mib) <rest:line>
packets carry no labels
    (mpls|tag-switching) <rest:line>
    >(l2tp-class|pseudowire-class) <rest:line>
`policy-map type queueing` belongs to other switches: enter queueing actions in `policy-map NAME`
    >(policy-map|class-map) type (queueing|qos) <rest:line>
packets are not classified by MAC addresses
    >mac access-list <rest:line>
    access-list <list:700-799> <rest:line>
    access-list <list:1100-1199> <rest:line>
named ranges are not supported: enter `interface range` with the interfaces
    interface range macro <rest:line>
    define interface-range <rest:line>
static MAC addresses are not supported
    (mac-address-table|mac address-table static) <rest:line>
frames are not mirrored
    monitor session <rest:line>
no interface of this kind is modelled
    >controller <rest:line>
packets are not redirected to caches
    ip wccp <rest:line>
neighbours are discovered by ARP only
    arp <rest:line>
    ip arp inspection <rest:line>
ports are open to all stations
    dot1x <rest:line>
[interface]
no routing protocol runs
    ip (ospf|eigrp|rip|router|pim|igmp|summary-address|hello-interval|hold-time|bandwidth-percent) <rest:line>
    ip (authentication|split-horizon|rgmp|multicast|mrm) [<rest:line>]
    ip (cgmp|dvmrp|pgm|urd|mobile|proxy-mobile) [<rest:line>]
    (isis|lisp|ospfv3) <rest:line>
    ipv6 (ospf|rip|eigrp|pim|mld) <rest:line>
addresses are not translated
    ip nat <rest:line>
    nat64 <rest:line>
packets are routed by destination only
    ip load-sharing per-packet
    ip (policy|wccp) <rest:line>
there is one routing table
    vrf receive <rest:line>
    ip vrf receive <rest:line>
packets are not encrypted
    crypto (map|ipsec|engine) <rest:line>
    (macsec|mka) [<rest:line>]
packets carry no labels
    (mpls|tag-switching) <rest:line>
    >xconnect <rest:line>
packets are not inspected beyond their headers
    ip (inspect|verify|ips|admission|auth-proxy|security) <rest:line>
    ipv6 (inspect|verify) <rest:line>
    zone-member security <rest:line>
    (utd|umbrella|waas) <rest:line>
packets are not classified by MAC addresses
    mac access-group <rest:line>
gateway redundancy is not modelled
    (standby|vrrp|glbp) <rest:line>
addresses must be configured: they cannot be learned or borrowed
    ip address (dhcp|negotiated|pool) [<rest:line>]
    ip unnumbered <rest:line>
[config router]
only IP is routed
    ({OTHER_PROTOCOLS}) [<rest:line>]
    ({OTHER_PROTOCOLS_OF_ROUTERS}|mop) [<rest:line>]
frames carry no security group tag
    >ip access-list role-based <rest:line>
    cts role-based <rest:line>
packets are not inspected beyond their headers
    (ip|ipv6) inspect <rest:line>
    ip (urlfilter|trigger-authentication) <rest:line>
    >(zone|zone-pair) security <rest:line>
    >parameter-map type <rest:line>
links are not bundled
    multilink virtual-template <rest:line>
subinterfaces of serial lines are Frame Relay circuits, which are not modelled
    >interface <name:interface> multipoint
reactions to measurements of operations are not supported
    ip sla [monitor] (reaction-configuration|reaction-trigger|logging) [<rest:line>]
    ip sla [monitor] (low-memory|key-chain|reset|restart) [<rest:line>]
    ip sla (enable|auto|application|ethernet-monitor|keepalive|periodic) [<rest:line>]
    ip sla [monitor] group <rest:line>
the syntax of releases before 12.3(14)T: enter `ip sla`
    >rtr <rest:line>
the router's own packets have the marks of the program that sends them
    ip (tos|qos) <rest:line>
a router does not bridge frames
    bridge <rest:line>
    >bridge-domain <rest:line>
    >l2vpn <rest:line>
configure the circuit on its own interface
    >vc-class atm <rest:line>
dial-up and tunnels are not modelled
    >bba-group <rest:line>
    virtual-profile <rest:line>
switch modules of routers are not modelled
    >vlan <rest:line>
    (vtp|spanning-tree) <rest:line>
[interface router]
only IP is routed
    ({OTHER_PROTOCOLS}) [<rest:line>]
    ({OTHER_PROTOCOLS_OF_INTERFACES}) [<rest:line>]
frames carry no security group tag
    >cts manual
    cts role-based <rest:line>
ports do not ask for a login
    (authentication|eapol) <rest:line>
a frame has at most one VLAN tag (802.1Q)
    dot1q tunneling <rest:line>
    vlan-range <rest:line>
backup lines are not supported: packets follow the routes
    (backup|transmit-interface) <rest:line>
configure RTP priority in a policy-map: `priority` in a class with `match ip rtp`
    ip rtp priority <rest:line>
a port has one circuit and no bundles
    >bundle <name:word>
links are not bundled
    multilink (max-fragments|interleave|min-links|max-links) [<rest:line>]
loss of a neighbour is not detected
    bfd <rest:line>
clock, framing and channels of a line come from the experiment's link
    (invert|physical-layer|nrzi-encoding|ignore-dcd|dce-terminal-timing-enable|serial|service-module) [<rest:line>]
    (framing|cablelength|crc|loopback|transmitter-delay|dsu|down-when-looped) [<rest:line>]
a port has the speed of its hardware
    pause [<rest:line>]
    flowcontrol [<rest:line>]
service instances bridge frames, which is not supported on a router
    >service instance <rest:line>
CAR matches access lists, and marks DSCP, precedence and QoS group only
    rate-limit (input|output) (dscp|qos-group) <rest:line>
    rate-limit (input|output) access-group rate-limit <rest:line>
keepalives can only be turned on or off
    keepalive <seconds:0-32767> [<rest:line>]
a router does not bridge frames
    bridge-group <rest:line>
Frame Relay is not modelled
    encapsulation frame-relay [<rest:line>]
    >frame-relay interface-dlci <rest:line>
a port has one circuit: enter `pvc VPI/VCI`
    >(vc|pvc-in-range|range) <rest:line>
    pvc <name:word> <circuit:circuit>
the line itself and its signalling are not modelled
    atm <rest:line>
no session is set up: PPPoE comes from the link's framing, and the interface has the address
    pppoe <rest:line>
dial-up and tunnels are not modelled
    (dialer|dialer-group|isdn|tunnel|keepalive-tunnel|peer|vpdn) <rest:line>
switch modules of routers are not modelled
    (switchport|vlan-id) [<rest:line>]
[atm-vc router]
a port has one circuit, with the queues of its policy-map
    (queue-depth|random-detect|vc-hold-queue|class-vc|class-range|bump|protect) [<rest:line>]
    (precedence|dscp|ip rtp priority) <rest:line>
circuits have a constant rate, or a peak and a sustainable one: `cbr`, `ubr`, `vbr-nrt`
    (abr|vbr-rt) <rest:line>
the circuit leads to one neighbour, and its state is not tested
    (oam-pvc|oam|inarp|broadcast|ilmi|protocol ip) [<rest:line>]
no session is set up: PPP comes from the link's framing, and the interface has the address
    (pppoe-client|pppoe|dialer|protocol ppp|protocol pppoe|ppp) [<rest:line>]
[subinterface router]
random-detect without a policy-map belongs to the port: enter it on the main interface
    random-detect [<rest:line>]
a frame has at most one VLAN tag (802.1Q)
    encapsulation dot1Q <vlan:1-4094> second-dot1q <rest:line>
    encapsulation isl <rest:line>
traffic-shape belongs to the port: on a subinterface shape in a policy-map
    traffic-shape (rate|group) <rest:line>
CAR, fair-queue and queue lists belong to the port: on a subinterface use a policy-map
    (rate-limit|fair-queue|priority-group|custom-queue-list|max-reserved-bandwidth) [<rest:line>]
hold queue and transmit ring belong to the port: enter them on the main interface
    (hold-queue|tx-ring-limit) [<rest:line>]
[class-map switch]
packets are not inspected beyond their headers: NBAR is not modelled
    match [not] protocol (rtp|http|attribute) [<rest:line>]
packets carry no labels
    match [not] mpls experimental <rest:line>
packets are not classified by MAC addresses
    match [not] (source-address|destination-address) mac <rest:line>
this switch classifies by DSCP, precedence and access lists, not by fields of the frame
    match [not] (cos|vlan) <rest:line>
packets are not classified by circuits
    match [not] (fr-dlci|atm-vci|atm) <rest:line>
this switch classifies IPv4 only
    match protocol ipv6
[config switch]
packets are not inspected beyond their headers
    >policy-map type (inspect|packet) <rest:line>
    >class-map type (inspect|packet) <rest:line>
policy-map types are not supported: enter actions in `policy-map NAME`
    >policy-map type <kind:word> <rest:line>
    >class-map type (control|traffic|port-filter|queue-threshold|logging|stack|access-control) <rest:line>
macros are not expanded: enter the lines of the policy
    auto qos [<rest:line>]
marks are neither bridged nor counted
    mls qos (bridged|marking) [<rest:line>]
macros are not expanded: enter their lines
    macro global <rest:line>
only other switches have queues of this kind
    qos queue-softmax-multiplier <rest:line>
    qos queue-stats-frame-count
only routers send probes
    >(ip sla|rtr) [<rest:line>]
{TABLES}
    >table-map <rest:line>
no interface of this kind is modelled
    >interface <name:other-interface>
this switch classifies IPv4 only, and does not route IPv6
    >ipv6 access-list <rest:line>
    ipv6 (unicast-routing|route) [<rest:line>]
[class-map router]
marks are DSCP, precedence, CoS and the QoS group: TOS bits other than the precedence are matched as a DSCP
    match [not] [ip] tos <rest:line>
IPv6 marks have no separate command: `match dscp` or `match precedence` in a class with `match protocol ipv6`
    match [not] ipv6 (dscp|precedence) <rest:line>
[policy-class switch]
{TABLES}
    set [ip] dscp (cos|qos-group|table|exp) [<rest:line>]
    set [ip] precedence (cos|qos-group|table|exp) [<rest:line>]
    set cos (dscp|precedence|cos-inner|table) [<rest:line>]
    set qos-group (dscp|precedence|atm-clp|cos|mpls) [<rest:line>]
packets have no discard class, and cells and frames no discard-eligible bit
    set discard-class [<rest:line>]
a frame has at most one VLAN tag (802.1Q)
    set vlan <rest:line>
marks are DSCP and precedence: the other TOS bits are set as a DSCP
    set ip tos <rest:line>
packets carry no labels
    set mpls experimental <rest:line>
this switch marks DSCP and precedence; queues belong to ports, not to classes
    set (qos-group|cos) <value:0-99>
    (shape|bandwidth|priority|queue-limit|queue-buffers|random-detect|fair-queue) [<rest:line>]
    police rate <rest:line>
[interface switch]
only QoS policy-maps are modelled, which have no type: `service-policy input NAME`
    service-policy (type|control|history) [<rest:line>]
macros are not expanded: enter their lines for trust and queues, or auto qos voip
    auto qos (trust|video|classify) [<rest:line>]
pass-through is not modelled: a port that trusts one mark rewrites the other using the maps
    mls qos trust (cos pass-through|pass-through) [<rest:line>]
the only modelled trust device is a telephone
    mls qos trust device (ip-camera|cts|media-player) [<rest:line>]
queues of the switch are configured by srr-queue, and marks are not monitored
    (wrr-queue|rcv-queue|trust) <rest:line>
    mls qos (monitor|ipe|bridged|queue-monitor) [<rest:line>]
backup ports and ports behind telephones are not modelled
    switchport (backup|priority) <rest:line>
TCP segment sizes are not rewritten
    ip tcp adjust-mss <rest:line>
all lines accept packets of up to 1500 bytes
    (mtu|ip mtu) <rest:line>
packets are not filtered: access lists classify
    ip access-group <rest:line>
links are not bundled
    channel-group <rest:line>
packets may leave through the interface on which they arrived
    (storm-control|ip arp inspection|ip verify) <rest:line>
    switchport (port-security|block|protected) [<rest:line>]
trunks carry every VLAN, and phones have no separate VLAN
    switchport (trunk (allowed|pruning)|voice) <rest:line>
ports are open to all stations
    (dot1x|authentication|mab) [<rest:line>]
a port of this switch polices and marks on input; on output it has queues and no policies
    service-policy output [<rest:line>]
[policy-class router]
a policer meters the packet bytes of its own class
    police rate <cells:1-2000000> cps [<rest:line>]
    police (aggregate|flow) <rest:line>
packets are not inspected, admitted or trusted by a class
    (inspect|pass|urlfilter|admit|trust|dbl|plim) [<rest:line>]
packets are routed by destination only
    set (metric|interface|default) <rest:line>
    set ip (next-hop|default|df) <rest:line>
random-detect thresholds belong to a value, such as a DSCP
    random-detect <low:1-1000000> (ms|us|bytes) <rest:line>
[police]
a packet has no colour before it is policed
    conform-color <rest:line>
[policy-map]
fragments of a class are not distinguished
    class <name:word> fragment <rest:line>
    class type <rest:line>
[sla router]
the operation has no type, or its type was refused
    (frequency|timeout|threshold|tos|traffic-class|tag|owner|request-data-size|history) <rest:line>
only icmp-echo, icmp-jitter, udp-echo and udp-jitter are modelled
    (http|tcp-connect|path-echo|path-jitter|dns|ftp|dhcp|voip|ethernet|dlsw|mpls|frame-relay|slm|video) <rest:line>
    type (http|tcpConnect|pathEcho|pathJitter|dns|ftp|dhcp|voip|slm|dlsw|frame-relay|mpls|ethernet) [<rest:line>]
MOS and ICPIF for a codec are not modelled: configure the same traffic with num-packets and interval
    udp-jitter <target:address> <port:1-65535> codec <rest:line>
    udp-jitter <target:address> <port:1-65535> source-ip <source:address> codec <rest:line>
    udp-jitter <target:address> <port:1-65535> source-port <from:1-65535> codec <rest:line>
    type jitter dest-ipaddr <target:address> dest-port <port:1-65535> codec <rest:line>
the target of an operation must be an address: names are not resolved
    (icmp-echo|icmp-jitter|udp-echo|udp-jitter) <target:host-name> [<rest:line>]
[sla-icmp-jitter router]
only packets and times of an operation are modelled
    vrf <name:word>
    (precision|operation-packet-priority|verify-data|clock-tolerance|lives-of-history-kept) [<rest:line>]
    (buckets-of-history-kept|samples-of-history-kept|filter-for-history|percentile|data-pattern) [<rest:line>]
    history (filter|lives-kept|buckets-kept|enhanced|samples-kept) <rest:line>
[sla-icmp-echo router]
the kernel chooses the flow label of IPv6 operations
    flow-label <rest:line>
[policy-class queue-limit-packets]
introduced with HQF in 12.4(20)T: this router has earlier software
    priority level <level:1-4> [<rest:line>]
    fair-queue [<queues:16-4096>] queue-limit <rest:line>
    queue-limit <limit:1-64000000> (bytes|ms|us)
    queue-limit (dscp|precedence|cos|discard-class|qos-group) <rest:line>
    bandwidth remaining ratio <rest:line>
    shape (average|peak) <rate:8000-154400000> [<bits:256-154400000> [<more:0-154400000>]] account <rest:line>
    shape (average|peak) percent <share:1-100> account <rest:line>
    bandwidth <kbps:8-2000000> account <rest:line>
    bandwidth [remaining] percent <share:1-100> account <rest:line>
[policy-class queue-limit-units]
with HQF (from 12.4(20)T) a shaper uses the queue of its class: use queue-limit
    shape max-buffers <rest:line>
[police queue-limit-packets]
introduced with HQF in 12.4(20)T: this router has earlier software
    account (user-defined|dot1q|qinq) <rest:line>
[policy-class limit-microseconds]
a router has two levels of priority; more levels and `express` belong to switches
    priority level <level:3-7> [<rest:line>]
    priority level <level:1-7> express [<rest:line>]
"""
)
