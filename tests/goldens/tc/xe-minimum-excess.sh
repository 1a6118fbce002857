#!/bin/sh -e
# QoS of ISR for tc(8), Linux 5.1 or later.
# Devices: eth0 is GigabitEthernet0/0/0.
#
# Approximate, with the difference:
#   line 24: GigabitEthernet0/0/0 output, policy-map PARENT, class class-default: shape average: the
#     same rate; bursts of up to 3028 bytes after a pause, 1522 bytes on the router
#   line 19: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / SCAVENGER: shape
#     average: the same rate; bursts of up to 3028 bytes after a pause, 1522 bytes on the router
#   line 13: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / VOICE: priority:
#     always policed; the router polices only while the line is congested
#   line 21: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / class-default:
#     fair-queue: sfq with 16 flow queues of 16 packets; equal shares in bytes, flows by another
#     hash
#
# Exact:
#   line 15: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / VIDEO: bandwidth:
#     rate of HTB; the rest is shared by quantum
#   line 17: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / DATA: bandwidth:
#     rate of HTB; the rest is shared by quantum
#   line 14: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / VIDEO:
#     queue-limit: pfifo of 64 packets
#   line 16: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / DATA: queue-limit:
#     pfifo of 64 packets
#   line 18: GigabitEthernet0/0/0 output, policy-map CHILD, class class-default / SCAVENGER:
#     queue-limit: pfifo of 64 packets

# GigabitEthernet0/0/0, policies: output PARENT
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc del dev eth0 clsact 2>/dev/null || true
# policy-map PARENT
tc qdisc add dev eth0 root handle 1: htb default 0x15
# line
tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit ceil 1gbit burst 125000 cburst 125000 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map PARENT, class class-default
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 1514
# policy-map CHILD, class class-default / VOICE
tc class add dev eth0 parent 1:10 classid 1:11 htb rate 10mbit ceil 10mbit burst 1514 cburst 1514 prio 0 quantum 1514
tc qdisc add dev eth0 parent 1:11 handle 11: pfifo limit 512
# policy-map CHILD, class class-default / VIDEO
tc class add dev eth0 parent 1:10 classid 1:12 htb rate 2mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:12 handle 12: pfifo limit 64
# policy-map CHILD, class class-default / DATA
tc class add dev eth0 parent 1:10 classid 1:13 htb rate 1mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:13 handle 13: pfifo limit 64
# policy-map CHILD, class class-default / SCAVENGER
tc class add dev eth0 parent 1:10 classid 1:14 htb rate 8kbit ceil 1mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:14 handle 14: pfifo limit 64
# policy-map CHILD, class class-default / class-default
tc class add dev eth0 parent 1:10 classid 1:15 htb rate 8kbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:15 handle 15: sfq limit 64 depth 16 flows 16 divisor 16 quantum 1514
# filters
tc qdisc add dev eth0 clsact
# policy-map PARENT
tc filter add dev eth0 egress chain 0 pref 1 protocol arp matchall action pass
# policy-map PARENT, class class-default
tc filter add dev eth0 egress chain 0 pref 2 protocol all matchall action goto chain 1
# policy-map CHILD, class class-default / VOICE
tc filter add dev eth0 egress chain 1 pref 1 protocol ip flower ip_tos 0xb8/0xfc action goto chain 2
tc filter add dev eth0 egress chain 1 pref 2 protocol ipv6 flower ip_tos 0xb8/0xfc action goto chain 2
# policy-map CHILD, class class-default / VIDEO
tc filter add dev eth0 egress chain 1 pref 3 protocol ip flower ip_tos 0x88/0xfc action goto chain 3
tc filter add dev eth0 egress chain 1 pref 4 protocol ipv6 flower ip_tos 0x88/0xfc action goto chain 3
# policy-map CHILD, class class-default / DATA
tc filter add dev eth0 egress chain 1 pref 5 protocol ip flower ip_tos 0x48/0xfc action goto chain 4
tc filter add dev eth0 egress chain 1 pref 6 protocol ipv6 flower ip_tos 0x48/0xfc action goto chain 4
# policy-map CHILD, class class-default / SCAVENGER
tc filter add dev eth0 egress chain 1 pref 7 protocol ip flower ip_tos 0x20/0xfc action goto chain 5
tc filter add dev eth0 egress chain 1 pref 8 protocol ipv6 flower ip_tos 0x20/0xfc action goto chain 5
# policy-map CHILD, class class-default / class-default
tc filter add dev eth0 egress chain 1 pref 9 protocol all matchall action goto chain 6
# policy-map CHILD, class class-default / VOICE
tc filter add dev eth0 egress chain 2 pref 1 protocol all matchall action skbedit priority 1:11 pipe action police rate 500kbit burst 12500 conform-exceed drop/pipe action pass
# policy-map CHILD, class class-default / VIDEO
tc filter add dev eth0 egress chain 3 pref 1 protocol all matchall action skbedit priority 1:12 pipe action pass
# policy-map CHILD, class class-default / DATA
tc filter add dev eth0 egress chain 4 pref 1 protocol all matchall action skbedit priority 1:13 pipe action pass
# policy-map CHILD, class class-default / SCAVENGER
tc filter add dev eth0 egress chain 5 pref 1 protocol all matchall action skbedit priority 1:14 pipe action pass
# policy-map CHILD, class class-default / class-default
tc filter add dev eth0 egress chain 6 pref 1 protocol all matchall action skbedit priority 1:15 pipe action pass
