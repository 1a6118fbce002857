#!/bin/sh -e
# QoS of EDGE for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/1.
#
# Approximate, with the difference:
#   line 7: FastEthernet0/1 output, policy-map LINE, class BULK: match of ports: fragments have no
#     visible ports: a fragment matches no entry with ports
#
# Exact:
#   line 11: FastEthernet0/1 output, policy-map LINE, class GOLD: bandwidth remaining percent: rate
#     and quantum of HTB: 50.0% of the rate that priority leaves
#   line 14: FastEthernet0/1 output, policy-map LINE, class SILVER: bandwidth remaining percent:
#     rate and quantum of HTB: 30.0% of the rate that priority leaves
#   line 18: FastEthernet0/1 output, policy-map LINE, class class-default: bandwidth remaining
#     percent: rate and quantum of HTB: 20.0% of the rate that priority leaves
#   line 12: FastEthernet0/1 output, policy-map LINE, class GOLD: queue-limit: bfifo of 20000 bytes
#   line 13: FastEthernet0/1 output, policy-map LINE, class SILVER: queue-limit: pfifo of 64 packets
#   line 17: FastEthernet0/1 output, policy-map LINE, class class-default: queue-limit: pfifo of 64
#     packets
#   line 16: FastEthernet0/1 output, policy-map LINE, class BULK: set dscp: pedit

# FastEthernet0/1, policies: output LINE
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc del dev eth0 clsact 2>/dev/null || true
# policy-map LINE
tc qdisc add dev eth0 root handle 1: htb default 0x12
# line
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit burst 1514 cburst 1514 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map LINE, class GOLD
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 3785
tc qdisc add dev eth0 parent 1:10 handle 10: bfifo limit 20000
# policy-map LINE, class SILVER
tc class add dev eth0 parent 1:1 classid 1:11 htb rate 3mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 2271
tc qdisc add dev eth0 parent 1:11 handle 11: pfifo limit 64
# policy-map LINE, class class-default
tc class add dev eth0 parent 1:1 classid 1:12 htb rate 2mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:12 handle 12: pfifo limit 64
# filters
tc qdisc add dev eth0 clsact
# policy-map LINE, class GOLD
tc filter add dev eth0 egress chain 0 pref 1 protocol ip flower ip_tos 0x68/0xfc action goto chain 1
tc filter add dev eth0 egress chain 0 pref 2 protocol ip flower ip_tos 0x70/0xfc action goto chain 1
# policy-map LINE, class SILVER
tc filter add dev eth0 egress chain 0 pref 3 protocol ip flower ip_tos 0x40/0xe0 action goto chain 2
tc filter add dev eth0 egress chain 0 pref 4 protocol ipv6 flower ip_tos 0x40/0xe0 action goto chain 2
# policy-map LINE, class BULK
tc filter add dev eth0 egress chain 0 pref 5 protocol ip flower ip_proto tcp src_port 25 action goto chain 3
tc filter add dev eth0 egress chain 0 pref 6 protocol ip flower ip_proto tcp dst_port 25 action goto chain 3
tc filter add dev eth0 egress chain 0 pref 7 protocol ipv6 flower ip_proto tcp src_port 25 action goto chain 3
tc filter add dev eth0 egress chain 0 pref 8 protocol ipv6 flower ip_proto tcp dst_port 25 action goto chain 3
# policy-map LINE, class class-default
tc filter add dev eth0 egress chain 0 pref 9 protocol all matchall action goto chain 4
# policy-map LINE, class GOLD
tc filter add dev eth0 egress chain 1 pref 1 protocol all matchall action skbedit priority 1:10 pipe action pass
# policy-map LINE, class SILVER
tc filter add dev eth0 egress chain 2 pref 1 protocol all matchall action skbedit priority 1:11 pipe action pass
# policy-map LINE, class BULK
tc filter add dev eth0 egress chain 3 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x20 retain 0xfc pipe action csum ip4h pipe action skbedit priority 1:12 pipe action pass
tc filter add dev eth0 egress chain 3 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x20 retain 0xfc pipe action skbedit priority 1:12 pipe action pass
tc filter add dev eth0 egress chain 3 pref 3 protocol all matchall action skbedit priority 1:12 pipe action pass
# policy-map LINE, class class-default
tc filter add dev eth0 egress chain 4 pref 1 protocol all matchall action skbedit priority 1:12 pipe action pass
