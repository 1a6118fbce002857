"""Commands on subjects that a lab does not have: labels, payload, other interface types, other hardware's buffers.

They are stored and printed. On a real device they affect packets that a lab does not have, so each of them is listed as
undecided.
"""

from __future__ import annotations

from qoslab.ios.command_families import parse_families

NO_LABELS = "lab packets carry no labels"
NO_DROP_BIT = "cells and frames in a lab have no discard-eligible bit"
NO_SECOND_TAG = "frames in a lab have at most one VLAN tag"
NO_TUNNELS = "a lab has no tunnels, dial-up sessions, bundles or bridge domains"
IOS_XE = "limit-microseconds"
"""A capability that only IOS-XE has."""

CRITERIA = parse_families(
    f"""
[class-map router]
a router in a lab forwards IP only
    match [not] protocol (aarp|apollo|appletalk|arp|bridge|bstun|cdp|clns|clns_es|clns_is|cmns|compressedtcp|decnet
    |dlsw|ipx|llc2|pad|pppoe|pppoe-discovery|qllc|rsrb|snapshot|stun|vines|vofr|xns)
depends on the payload, and lab traffic has no payload that NBAR recognises
    match [not] protocol <application:word> [<rest:line>]
    match [not] (application|metadata|field|start|flow) <rest:line>
{NO_LABELS}
    match [not] mpls experimental <rest:line>
{NO_DROP_BIT}
    match [not] (fr-de|atm-clp)
circuits are not distinguished
    match [not] (fr-dlci|atm-vci|atm) <rest:line>
{NO_SECOND_TAG}
    match [not] (cos|vlan) inner <rest:line>
    match [not] service <rest:line>
MAC addresses come from the lab
    match [not] (source-address|destination-address) mac <rest:line>
no supported command sets it
    match [not] traffic-class <rest:line>
{NO_TUNNELS}
    match [not] (packet tunnel|tunnel) <rest:line>
lab packets do not have this property, or the router does not learn it
    match [not] (any-source|tag|input vlan|port-type|user|l2vpn|object-group|class|security-group|user-group
    |group-object|ethertype|spi|cac|wlan|efp|device-type|flowspec) [<rest:line>]
a class without other lines
    match none
""",
    undecided=True,
)
"""Criteria that no packet of a lab matches."""

UNDECIDED = parse_families(
    f"""
[policy-class router]
{NO_LABELS}
    set mpls experimental [imposition|topmost] <rest:line>
    set [ip] dscp (exp|mpls) [<rest:line>]
    set [ip] precedence (exp|mpls) [<rest:line>]
    set cos (exp|mpls) [<rest:line>]
    set qos-group (exp|mpls|atm-clp) [<rest:line>]
    set discard-class (exp|mpls) [<rest:line>]
    random-detect (mpls-exp-based|exp) [<rest:line>]
    queue-limit exp <rest:line>
{NO_DROP_BIT}
    set (fr-de|atm-clp|fr-fecn-becn) [<rest:line>]
    random-detect (atm-clp-based|clp|fr-de|clp-based) [<rest:line>]
    queue-limit (atm|clp) <rest:line>
{NO_SECOND_TAG}
    set (cos-inner|cos inner|vlan) <rest:line>
    set cos (cos-inner|inner) [<rest:line>]
packets have no traffic class, security group or user priority inside the router
    set (traffic-class|wlan|srp-priority|security-group) <rest:line>
the other TOS bits of a packet are part of its DSCP
    set ip tos <rest:line>
separate thresholds for flows, VLANs and reservations are not supported
    random-detect (flow|vlan|aggregate|qos-group-based) [<rest:line>]
    random-detect precedence rsvp <rest:line>
applies to distributed processors and switches: use `queue-limit`
    fair-queue [<queues:16-4096>] (individual-limit|aggregate-limit) <rest:line>
    queue-limit percent <rest:line>
headers and payloads are not compressed in a lab
    (compression header|header-compression) ip [<rest:line>]
Frame Relay and voice adaptation of a shaper are not modelled
    shape (fr-voice-adapt|adaptive percent|adaptive upstream) [<rest:line>]
policers in packets per second belong to the control plane, which is not policed
    police rate <packets:1-2000000> pps [<rest:line>]
percentages refer to the shaper above, or to `bandwidth`
    bandwidth qos-reference <rest:line>
{NO_TUNNELS}
    set [ip] (dscp|precedence) tunnel <rest:line>
[interface router]
percentages refer to the shaper above, or to `bandwidth`
    bandwidth qos-reference <rest:line>
headers and payloads are not compressed in a lab
    compress [<each:line>]
    ip (rtp|tcp) header-compression [<each:line>]
    ip (rtp|tcp) compression-connections <rest:line>
macros are not expanded: paste a running configuration with the lines of the macro
    auto (qos|discovery) [<each:line>]
hardware queues exist on switches and line cards, not on a router
    (mls qos|wrr-queue|rcv-queue|srr-queue|queue-set|platform qos|platform qos-trust|qos trust) [<each:line>]
    priority-queue (out|cos-map) [<each:line>]
    fair-queue (tos|qos-group|limit|aggregate-limit|individual-limit) [<each:line>]
    (tx-queue-limit|rx-queue-limit) <rest:line>
marking by routes is not supported
    bgp-policy <each:line>
overhead accounting is configured on a shaper
    (qos-overhead-accounting|overhead-accounting) [<rest:line>]
no frame requests a lower rate: a shaper has one rate
    traffic-shape (adaptive|fecn-adapt|fecn-create) [<rest:line>]
no node in a lab signals a reservation
    ip rtp reserve <rest:line>
    ip rsvp <each:line>
policies of this type inspect, filter or monitor: they neither queue nor mark
    service-policy (type|control|history) [<each:line>]
separate thresholds for flows, groups and reservations are not supported
    random-detect (flow|attach) [<each:line>]
    random-detect precedence rsvp <rest:line>
a lab has no Frame Relay circuits
    frame-relay (traffic-shaping|class|fragment|fragmentation|lmi-type|lmi-n391dte|intf-type) [<each:line>]
    frame-relay (fair-queue|interface-queue|congestion-management|policing|qos-autosense) [<each:line>]
    frame-relay (map|de-group|priority-dlci-group|inverse-arp|local-dlci|payload-compression) [<each:line>]
    frame-relay ip (rtp|tcp) <each:line>
a subinterface without `bandwidth` uses the bandwidth of its port
    bandwidth inherit [<rest:line>]
all interfaces share one routing table
    (ip vrf|vrf) forwarding <rest:line>
{NO_TUNNELS}
    channel-group <rest:line>
    ppp multilink [<each:line>]
    multilink-group <rest:line>
    pppoe enable [<rest:line>]
    pppoe-client <rest:line>
    nhrp <each:line>
    ip nhrp <each:line>
    qos pre-classify
depends on the payload, and lab traffic has no payload that NBAR recognises
    ip nbar (enable|classification|custom) [<each:line>]
[config router, resolver]
macros are not expanded: paste a running configuration with the lines of the macro
    auto qos [<each:line>]
hardware queues exist on switches and line cards, not on a router
    mls qos [<each:line>]
no node in a lab signals a reservation
    call rsvp-sync [<each:line>]
    ip rsvp <each:line>
configure random-detect in a policy-map, not in groups
    >random-detect-group <key:line>
a lab has no Frame Relay circuits
    frame-relay <each:line>
depends on the payload, and lab traffic has no payload that NBAR recognises
    ip nbar protocol-pack <each:line>
    >ip nbar attribute-map <key:word>
    ip nbar attribute-set <each:line>
    ip nbar (protocol-discovery|classification|attribute|http-services|resources|pdlm) [<each:line>]
protocols use the ports of Cisco's table: match an access list for others
    ip nbar (port-map|custom) <each:line>
[config router, other-interfaces]
policies of this type inspect, filter or monitor: they neither queue nor mark
    >policy-map type <key-kind:word> <key:line>
    >class-map type <key-kind:word> <key:line>
{NO_TUNNELS}
    >interface <key:other-interface>
a lab has no Frame Relay circuits
    >map-class (frame-relay|atm|dialer) <key:word>
[policy-class limit-microseconds]
applies to buffers of a Catalyst 9000: a router uses queue-limit
    queue-buffers ratio <rest:line>
[interface limit-microseconds]
a lab router neither bridges nor bundles frames
    (lacp|l2protocol|storm-control|port-channel|ethernet) <each:line>
applies to queues of line cards and switches, which a router does not have
    plim <each:line>
    trust device <rest:line>
[config router, platform]
all interfaces share one routing table
    >ip vrf <key:word>
    >vrf definition <key:word>
[config limit-microseconds, resolver]
applies to queues of line cards and switches, which a router does not have
    qos (queue-softmax-multiplier|queue-stats-frame-count|stack-buffer|share-buffer) [<rest:line>]
    qos (track-packet-dropped|wireless-default-untrust|egress-dscp-cos-map) [<rest:line>]
    platform qos <each:line>
    platform (tunnel-qos|port-channel) [<each:line>]
    port-channel (load-balancing|load-balance-hash-algo) <each:line>
""",
    undecided=True,
)
