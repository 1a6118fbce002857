#!/bin/sh -e
# QoS of BRANCH for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/0.
#
# Approximate, with the difference:
#   line 7: FastEthernet0/0 output, policy-map SHAPE, class WEB: shape average: the same rate;
#     bursts of up to 3200 bytes after a pause, 3200 bytes on the router; the router sends 1600
#     bytes at once every 25 ms
#   line 9: FastEthernet0/0 output, policy-map SHAPE, class class-default: shape average: the same
#     rate; bursts of up to 6250 bytes after a pause, 6250 bytes on the router; the router sends
#     3125 bytes at once every 25 ms
#   line 6: FastEthernet0/0 output, policy-map SHAPE, class WEB: fair-queue: sfq with 256 flow
#     queues and 64 packets in all: flows have equal shares, IOS weights them by precedence (1 to 8)
#   line 8: FastEthernet0/0 output, policy-map SHAPE, class class-default: fair-queue: sfq with 256
#     flow queues and 64 packets in all: flows have equal shares, IOS weights them by precedence (1
#     to 8)
#   line 3: FastEthernet0/0 output, policy-map SHAPE, class WEB: match of ports: fragments have no
#     visible ports: a fragment matches no entry with ports

# FastEthernet0/0, policies: output SHAPE
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc del dev eth0 clsact 2>/dev/null || true
# policy-map SHAPE
tc qdisc add dev eth0 root handle 1: htb default 0x11
# line
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit ceil 100mbit burst 12500 cburst 12500 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map SHAPE, class WEB
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 512kbit ceil 512kbit burst 1686 cburst 1686 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:10 handle 10: sfq limit 64 depth 64 flows 64 divisor 256 quantum 1514
# policy-map SHAPE, class class-default
tc class add dev eth0 parent 1:1 classid 1:11 htb rate 1mbit ceil 1mbit burst 4736 cburst 4736 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:11 handle 11: sfq limit 64 depth 64 flows 64 divisor 256 quantum 1514
# filters
tc qdisc add dev eth0 clsact
# policy-map SHAPE, class WEB
tc filter add dev eth0 egress chain 0 pref 1 protocol ip flower ip_proto tcp src_port 80 action goto chain 1
tc filter add dev eth0 egress chain 0 pref 2 protocol ip flower ip_proto tcp dst_port 80 action goto chain 1
tc filter add dev eth0 egress chain 0 pref 3 protocol ipv6 flower ip_proto tcp src_port 80 action goto chain 1
tc filter add dev eth0 egress chain 0 pref 4 protocol ipv6 flower ip_proto tcp dst_port 80 action goto chain 1
# policy-map SHAPE, class class-default
tc filter add dev eth0 egress chain 0 pref 5 protocol all matchall action goto chain 2
# policy-map SHAPE, class WEB
tc filter add dev eth0 egress chain 1 pref 1 protocol all matchall action skbedit priority 1:10 pipe action pass
# policy-map SHAPE, class class-default
tc filter add dev eth0 egress chain 2 pref 1 protocol all matchall action skbedit priority 1:11 pipe action pass
