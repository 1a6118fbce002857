#!/bin/sh -e
# QoS of VOICEGW for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/1.
#
# Approximate, with the difference:
#   line 23: FastEthernet0/1 output, policy-map SHAPE, class class-default: shape average: the same
#     rate; bursts of up to 3028 bytes after a pause, 1514 bytes on the router; the router sends
#     1000 bytes at once every 4 ms
#   line 20: FastEthernet0/1 output, policy-map LLQ, class class-default / class-default:
#     fair-queue: sfq with 256 flow queues of 16 packets; equal shares in bytes, flows by another
#     hash
#
# Exact:
#   line 17: FastEthernet0/1 output, policy-map LLQ, class class-default / DATA: bandwidth: rate and
#     quantum of HTB: 20.0% of the rate that priority leaves
#   line 11: FastEthernet0/1 output, policy-map LLQ, class class-default / VOICE: priority: HTB
#     class with priority over all others; no policer
#   line 14: FastEthernet0/1 output, policy-map LLQ, class class-default / VIDEO: priority: HTB
#     class with priority over all others; no policer
#   line 18: FastEthernet0/1 output, policy-map LLQ, class class-default / DATA: queue-limit: bfifo
#     of 5000 bytes
#   line 12: FastEthernet0/1 output, policy-map LLQ, class class-default / VOICE: police:
#     act_police, decisions equal within 0.025 bytes of the bucket
#   line 15: FastEthernet0/1 output, policy-map LLQ, class class-default / VIDEO: police:
#     act_police, decisions equal within 0.12 bytes of the bucket

# FastEthernet0/1, policies: output SHAPE
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc del dev eth0 clsact 2>/dev/null || true
# policy-map SHAPE
tc qdisc add dev eth0 root handle 1: htb default 0x14
# line
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit ceil 100mbit burst 12500 cburst 12500 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map SHAPE, class class-default
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 2mbit burst 1514 cburst 1514 prio 2 quantum 1514
# policy-map LLQ, class class-default / VOICE
tc class add dev eth0 parent 1:10 classid 1:11 htb rate 2mbit ceil 2mbit burst 1514 cburst 1514 prio 0 quantum 1514
tc qdisc add dev eth0 parent 1:11 handle 11: pfifo limit 64
# policy-map LLQ, class class-default / VIDEO
tc class add dev eth0 parent 1:10 classid 1:12 htb rate 2mbit ceil 2mbit burst 1514 cburst 1514 prio 1 quantum 1514
tc qdisc add dev eth0 parent 1:12 handle 12: pfifo limit 64
# policy-map LLQ, class class-default / DATA
tc class add dev eth0 parent 1:10 classid 1:13 htb rate 160kbit ceil 2mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:13 handle 13: bfifo limit 5000
# policy-map LLQ, class class-default / class-default
tc class add dev eth0 parent 1:10 classid 1:14 htb rate 640kbit ceil 2mbit burst 1514 cburst 1514 prio 2 quantum 6056
tc qdisc add dev eth0 parent 1:14 handle 14: sfq limit 4096 depth 16 flows 256 divisor 256 quantum 1514
# filters
tc qdisc add dev eth0 clsact
# policy-map SHAPE
tc filter add dev eth0 egress chain 0 pref 1 protocol arp matchall action pass
# policy-map SHAPE, class class-default
tc filter add dev eth0 egress chain 0 pref 2 protocol all matchall action goto chain 1
# policy-map LLQ, class class-default / VOICE
tc filter add dev eth0 egress chain 1 pref 1 protocol ip flower ip_tos 0xb8/0xfc action goto chain 2
tc filter add dev eth0 egress chain 1 pref 2 protocol ipv6 flower ip_tos 0xb8/0xfc action goto chain 2
# policy-map LLQ, class class-default / VIDEO
tc filter add dev eth0 egress chain 1 pref 3 protocol ip flower ip_tos 0x88/0xfc action goto chain 3
tc filter add dev eth0 egress chain 1 pref 4 protocol ipv6 flower ip_tos 0x88/0xfc action goto chain 3
tc filter add dev eth0 egress chain 1 pref 5 protocol ip flower ip_tos 0x80/0xfc action goto chain 3
tc filter add dev eth0 egress chain 1 pref 6 protocol ipv6 flower ip_tos 0x80/0xfc action goto chain 3
# policy-map LLQ, class class-default / DATA
tc filter add dev eth0 egress chain 1 pref 7 protocol ip flower ip_tos 0x48/0xfc action goto chain 4
tc filter add dev eth0 egress chain 1 pref 8 protocol ipv6 flower ip_tos 0x48/0xfc action goto chain 4
# policy-map LLQ, class class-default / class-default
tc filter add dev eth0 egress chain 1 pref 9 protocol all matchall action goto chain 5
# policy-map LLQ, class class-default / VOICE
tc filter add dev eth0 egress chain 2 pref 1 protocol all matchall action skbedit priority 1:11 pipe action police rate 200kbit burst 8000 conform-exceed drop/pipe action pass
# policy-map LLQ, class class-default / VIDEO
tc filter add dev eth0 egress chain 3 pref 1 protocol all matchall action skbedit priority 1:12 pipe action police rate 1mbit burst 30000 conform-exceed drop/pipe action pass
# policy-map LLQ, class class-default / DATA
tc filter add dev eth0 egress chain 4 pref 1 protocol all matchall action skbedit priority 1:13 pipe action pass
# policy-map LLQ, class class-default / class-default
tc filter add dev eth0 egress chain 5 pref 1 protocol all matchall action skbedit priority 1:14 pipe action pass
