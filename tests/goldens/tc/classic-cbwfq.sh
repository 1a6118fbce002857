#!/bin/sh -e
# QoS of BRANCH for tc(8), Linux 5.1 or later.
# Devices: ppp0 is Serial0/0.
#
# Approximate, with the difference:
#   line 12: Serial0/0 output, policy-map WAN, class SAP: bandwidth: 99.9% of the rate that priority
#     leaves, if class-default has one busy flow
#   line 10: Serial0/0 output, policy-map WAN, class VOICE: priority: always policed; the router
#     polices only while the line is congested
#   line 12: Serial0/0 output, policy-map WAN, class SAP: bandwidth: its share is cut to 664 times
#     that of the smallest class
#   line 15: Serial0/0 output, policy-map WAN, class class-default: fair-queue: sfq with 256 flow
#     queues and 64 packets in all: flows have equal shares, IOS weights them by precedence (1 to
#     8); with n busy flows IOS gives the class n times the share that one flow has here
#   line 5: Serial0/0 output, policy-map WAN, class SAP: match of ports: fragments have no visible
#     ports: a fragment matches no entry with ports
#
# Exact:
#   line 13: Serial0/0 output, policy-map WAN, class SAP: queue-limit: pfifo of 40 packets

# Serial0/0, policies: output WAN
ethtool -K ppp0 gro off gso off tso off
tc qdisc del dev ppp0 root 2>/dev/null || true
tc qdisc del dev ppp0 clsact 2>/dev/null || true
# policy-map WAN
tc qdisc add dev ppp0 root handle 1: htb default 0x12
# line
tc class add dev ppp0 parent 1: classid 1:1 htb rate 2mbit ceil 2mbit burst 1504 cburst 1504 prio 0 quantum 1504 overhead 7
# policy-map WAN, class VOICE
tc class add dev ppp0 parent 1:1 classid 1:10 htb rate 2mbit ceil 2mbit burst 1504 cburst 1504 prio 0 quantum 1504 overhead 4
tc qdisc add dev ppp0 parent 1:10 handle 10: pfifo limit 64
# policy-map WAN, class SAP
tc class add dev ppp0 parent 1:1 classid 1:11 htb rate 1869232bit ceil 2mbit burst 1504 cburst 1504 prio 2 quantum 1000000 overhead 4
tc qdisc add dev ppp0 parent 1:11 handle 11: pfifo limit 40
# policy-map WAN, class class-default
tc class add dev ppp0 parent 1:1 classid 1:12 htb rate 8kbit ceil 2mbit burst 1504 cburst 1504 prio 2 quantum 1504 overhead 4
tc qdisc add dev ppp0 parent 1:12 handle 12: sfq limit 64 depth 64 flows 64 divisor 256 quantum 1504
# filters
tc qdisc add dev ppp0 clsact
# policy-map WAN
tc filter add dev ppp0 egress chain 0 pref 1 protocol arp matchall action pass
# policy-map WAN, class VOICE
tc filter add dev ppp0 egress chain 0 pref 2 protocol ip flower ip_tos 0xb8/0xfc action goto chain 1
# policy-map WAN, class SAP
tc filter add dev ppp0 egress chain 0 pref 3 protocol ip flower ip_proto tcp dst_port 3200-3299 action goto chain 2
# policy-map WAN, class class-default
tc filter add dev ppp0 egress chain 0 pref 4 protocol all matchall action goto chain 3
# policy-map WAN, class VOICE
tc filter add dev ppp0 egress chain 1 pref 1 protocol all matchall action skbedit priority 1:10 pipe action police rate 128kbit burst 3200 overhead 4 conform-exceed drop/pipe action pass
# policy-map WAN, class SAP
tc filter add dev ppp0 egress chain 2 pref 1 protocol all matchall action skbedit priority 1:11 pipe action pass
# policy-map WAN, class class-default
tc filter add dev ppp0 egress chain 3 pref 1 protocol all matchall action skbedit priority 1:12 pipe action pass
