#!/bin/sh -e
# QoS of DSLAM for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/1.
#
# Approximate, with the difference:
#   line 5: FastEthernet0/1 output, policy-map DSL, class class-default: shape average: the same
#     rate; bursts of up to 3028 bytes after a pause, 2000 bytes on the router; the router sends
#     1000 bytes at once every 4 ms
#
# Exact:
#   line 4: FastEthernet0/1 output, policy-map DSL, class class-default: account: overhead and
#     linklayer of HTB
#   line 4: FastEthernet0/1 output, policy-map DSL, class class-default: queue-limit: pfifo of 64
#     packets

# FastEthernet0/1, policies: output DSL
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc del dev eth0 clsact 2>/dev/null || true
# policy-map DSL
tc qdisc add dev eth0 root handle 1: htb default 0x10
# line
tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit ceil 100mbit burst 12500 cburst 12500 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map DSL, class class-default
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 2mbit burst 1514 cburst 1514 prio 2 quantum 1514 overhead 10 linklayer atm
tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 64
# filters
tc qdisc add dev eth0 clsact
# policy-map DSL, class class-default
tc filter add dev eth0 egress chain 0 pref 1 protocol all matchall action goto chain 1
tc filter add dev eth0 egress chain 1 pref 1 protocol all matchall action skbedit priority 1:10 pipe action pass
