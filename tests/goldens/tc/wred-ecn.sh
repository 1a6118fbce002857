#!/bin/sh -e
# QoS of RED for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/1.
#
# Approximate, with the difference:
#   line 11: FastEthernet0/1 output, policy-map RED, class GOLD: random-detect: red with thresholds
#     of 45420 and 90840 bytes, 1/10; the mean ages while the line is idle; packets count by their
#     bytes, 1514 as one
#   line 16: FastEthernet0/1 output, policy-map RED, class DATA: random-detect: red with thresholds
#     of 36336 and 60560 bytes, 1/10; the mean ages while the line is idle; one curve instead of 3
#     by dscp; packets count by their bytes, 1514 as one
#
# Exact:
#   line 9: FastEthernet0/1 output, policy-map RED, class GOLD: bandwidth: rate and quantum of HTB:
#     40.0% of the rate that priority leaves
#   line 14: FastEthernet0/1 output, policy-map RED, class DATA: bandwidth: rate and quantum of HTB:
#     20.0% of the rate that priority leaves

# FastEthernet0/1, policies: output RED
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc del dev eth0 clsact 2>/dev/null || true
# policy-map RED
tc qdisc add dev eth0 root handle 1: htb default 0x12
# line
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit burst 1514 cburst 1514 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map RED, class GOLD
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 3028
tc qdisc add dev eth0 parent 1:10 handle 10: red limit 151400 min 45420 max 90840 avpkt 1514 burst 133 bandwidth 800kbit probability 0.1
# policy-map RED, class DATA
tc class add dev eth0 parent 1:1 classid 1:11 htb rate 2mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:11 handle 11: red limit 96896 min 36336 max 60560 avpkt 1514 burst 118 bandwidth 400kbit probability 0.1 ecn
# policy-map RED, class class-default
tc class add dev eth0 parent 1:1 classid 1:12 htb rate 4mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 3028
tc qdisc add dev eth0 parent 1:12 handle 12: pfifo limit 64
# filters
tc qdisc add dev eth0 clsact
# policy-map RED, class GOLD
tc filter add dev eth0 egress chain 0 pref 1 protocol ip flower ip_tos 0x68/0xfc action goto chain 1
tc filter add dev eth0 egress chain 0 pref 2 protocol ipv6 flower ip_tos 0x68/0xfc action goto chain 1
# policy-map RED, class DATA
tc filter add dev eth0 egress chain 0 pref 3 protocol ip flower ip_tos 0x48/0xfc action goto chain 2
tc filter add dev eth0 egress chain 0 pref 4 protocol ipv6 flower ip_tos 0x48/0xfc action goto chain 2
tc filter add dev eth0 egress chain 0 pref 5 protocol ip flower ip_tos 0x50/0xfc action goto chain 2
tc filter add dev eth0 egress chain 0 pref 6 protocol ipv6 flower ip_tos 0x50/0xfc action goto chain 2
tc filter add dev eth0 egress chain 0 pref 7 protocol ip flower ip_tos 0x58/0xfc action goto chain 2
tc filter add dev eth0 egress chain 0 pref 8 protocol ipv6 flower ip_tos 0x58/0xfc action goto chain 2
# policy-map RED, class class-default
tc filter add dev eth0 egress chain 0 pref 9 protocol all matchall action goto chain 3
# policy-map RED, class GOLD
tc filter add dev eth0 egress chain 1 pref 1 protocol all matchall action skbedit priority 1:10 pipe action pass
# policy-map RED, class DATA
tc filter add dev eth0 egress chain 2 pref 1 protocol all matchall action skbedit priority 1:11 pipe action pass
# policy-map RED, class class-default
tc filter add dev eth0 egress chain 3 pref 1 protocol all matchall action skbedit priority 1:12 pipe action pass
