#!/bin/sh -e
# QoS of HUB for tc(8), Linux 5.1 or later.
# Devices: eth0 is GigabitEthernet0/0, eth1 is GigabitEthernet0/1.
#
# Approximate, with the difference:
#   line 29: GigabitEthernet0/1 output, policy-map SHAPE-20M, class class-default: shape average:
#     the same rate; bursts of up to 20000 bytes after a pause, 20000 bytes on the router; the
#     router sends 10000 bytes at once every 4 ms
#   line 17: GigabitEthernet0/1 output, policy-map WAN, class class-default / VOICE: priority:
#     always policed; the router polices only while the line is congested
#   line 26: GigabitEthernet0/1 output, policy-map WAN, class class-default / class-default:
#     fair-queue: sfq with 256 flow queues of 16 packets; equal shares in bytes, flows by another
#     hash
#   line 5: GigabitEthernet0/1 output, policy-map WAN, class class-default / VIDEO: match of ports:
#     fragments have no visible ports: a fragment matches no entry with ports
#   line 8: GigabitEthernet0/1 output, policy-map WAN, class class-default / NOTUDP: match of ports:
#     fragments have no visible ports: a fragment matches no entry with ports
#
# Exact:
#   line 33: GigabitEthernet0/0 input, policy-map FROM-LAN, class VOICE: police: act_police,
#     decisions equal within 0.016 bytes of the bucket
#   line 20: GigabitEthernet0/1 output, policy-map WAN, class class-default / VIDEO: bandwidth
#     percent: rate and quantum of HTB: 25.0% of the rate that priority leaves
#   line 21: GigabitEthernet0/1 output, policy-map WAN, class class-default / VIDEO: queue-limit:
#     pfifo of 400 packets
#   line 18: GigabitEthernet0/1 output, policy-map WAN, class class-default / VOICE: set dscp: pedit
#   line 23: GigabitEthernet0/1 output, policy-map WAN, class class-default / NOTUDP: set dscp:
#     pedit
#   line 24: GigabitEthernet0/1 output, policy-map WAN, class class-default / NOTUDP: police:
#     act_police, decisions equal within 0.062 bytes of the bucket

# GigabitEthernet0/0, policies: input FROM-LAN
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 clsact 2>/dev/null || true
tc qdisc add dev eth0 clsact
# policy-map FROM-LAN
tc filter add dev eth0 ingress chain 0 pref 1 protocol arp matchall action pass
# policy-map FROM-LAN, class VOICE
tc filter add dev eth0 ingress chain 0 pref 2 protocol ip flower ip_tos 0xb8/0xfc action goto chain 1
tc filter add dev eth0 ingress chain 0 pref 3 protocol ipv6 flower ip_tos 0xb8/0xfc action goto chain 1
# policy-map FROM-LAN, class class-default
tc filter add dev eth0 ingress chain 0 pref 4 protocol all matchall action goto chain 2
# policy-map FROM-LAN, class VOICE
tc filter add dev eth0 ingress chain 1 pref 1 protocol all matchall action police rate 128kbit burst 4000 overhead 14 conform-exceed drop/pipe action pass
# policy-map FROM-LAN, class class-default
tc filter add dev eth0 ingress chain 2 pref 1 protocol all matchall action pass

# GigabitEthernet0/1, policies: output SHAPE-20M
ethtool -K eth1 gro off gso off tso off
tc qdisc del dev eth1 root 2>/dev/null || true
tc qdisc del dev eth1 clsact 2>/dev/null || true
# policy-map SHAPE-20M
tc qdisc add dev eth1 root handle 1: htb default 0x13
# line
tc class add dev eth1 parent 1: classid 1:1 htb rate 1gbit ceil 1gbit burst 125000 cburst 125000 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map SHAPE-20M, class class-default
tc class add dev eth1 parent 1:1 classid 1:10 htb rate 20mbit ceil 20mbit burst 18486 cburst 18486 prio 2 quantum 1514
# policy-map WAN, class class-default / VOICE
tc class add dev eth1 parent 1:10 classid 1:11 htb rate 20mbit ceil 20mbit burst 2500 cburst 2500 prio 0 quantum 1514
tc qdisc add dev eth1 parent 1:11 handle 11: pfifo limit 64
# policy-map WAN, class class-default / VIDEO
tc class add dev eth1 parent 1:10 classid 1:12 htb rate 4mbit ceil 20mbit burst 1514 cburst 2500 prio 2 quantum 1514
tc qdisc add dev eth1 parent 1:12 handle 12: pfifo limit 400
# policy-map WAN, class class-default / class-default
tc class add dev eth1 parent 1:10 classid 1:13 htb rate 12mbit ceil 20mbit burst 1514 cburst 2500 prio 2 quantum 4542
tc qdisc add dev eth1 parent 1:13 handle 13: sfq limit 4096 depth 16 flows 256 divisor 256 quantum 1514
# filters
tc qdisc add dev eth1 clsact
# policy-map SHAPE-20M
tc filter add dev eth1 egress chain 0 pref 1 protocol arp matchall action pass
# policy-map SHAPE-20M, class class-default
tc filter add dev eth1 egress chain 0 pref 2 protocol all matchall action goto chain 1
# policy-map WAN, class class-default / VOICE
tc filter add dev eth1 egress chain 1 pref 1 protocol ip flower ip_tos 0xb8/0xfc action goto chain 2
tc filter add dev eth1 egress chain 1 pref 2 protocol ipv6 flower ip_tos 0xb8/0xfc action goto chain 2
# policy-map WAN, class class-default / VIDEO
tc filter add dev eth1 egress chain 1 pref 3 protocol all matchall action goto chain 5
# policy-map WAN, class class-default / VOICE
tc filter add dev eth1 egress chain 2 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0xa0 retain 0xfc pipe action csum ip4h pipe action goto chain 9
tc filter add dev eth1 egress chain 2 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0xa0 retain 0xfc pipe action goto chain 9
tc filter add dev eth1 egress chain 2 pref 3 protocol all matchall action goto chain 9
# policy-map WAN, class class-default / VIDEO
tc filter add dev eth1 egress chain 3 pref 1 protocol all matchall action skbedit priority 1:12 pipe action pass
# policy-map WAN, class class-default / NOTUDP
tc filter add dev eth1 egress chain 4 pref 1 protocol ip flower ip_tos 0x40/0xe0 ip_proto udp dst_port 53 action goto chain 6
tc filter add dev eth1 egress chain 4 pref 2 protocol ip flower ip_proto udp dst_port 53 action goto chain 7
tc filter add dev eth1 egress chain 4 pref 3 protocol ip flower ip_proto udp dst_ip 10.1.2.3/32 dst_port 5000-6000 action goto chain 7
tc filter add dev eth1 egress chain 4 pref 4 protocol ip flower ip_proto tcp tcp_flags 0x10/0x10 action goto chain 7
tc filter add dev eth1 egress chain 4 pref 5 protocol ip flower ip_proto tcp tcp_flags 0x4/0x4 action goto chain 7
tc filter add dev eth1 egress chain 4 pref 6 protocol ip flower ip_tos 0x40/0xe0 action goto chain 6
tc filter add dev eth1 egress chain 4 pref 7 protocol ipv6 flower ip_tos 0x40/0xe0 action goto chain 6
tc filter add dev eth1 egress chain 4 pref 8 protocol all matchall action goto chain 7
# policy-map WAN, class class-default / VIDEO
tc filter add dev eth1 egress chain 5 pref 1 protocol ip flower ip_tos 0x88/0xfc action goto chain 3
tc filter add dev eth1 egress chain 5 pref 2 protocol ipv6 flower ip_tos 0x88/0xfc action goto chain 3
tc filter add dev eth1 egress chain 5 pref 3 protocol ip flower ip_proto udp dst_port 53 action goto chain 4
tc filter add dev eth1 egress chain 5 pref 4 protocol ip flower ip_proto udp dst_ip 10.1.2.3/32 dst_port 5000-6000 action goto chain 3
tc filter add dev eth1 egress chain 5 pref 5 protocol ip flower ip_proto tcp tcp_flags 0x10/0x10 action goto chain 3
tc filter add dev eth1 egress chain 5 pref 6 protocol ip flower ip_proto tcp tcp_flags 0x4/0x4 action goto chain 3
tc filter add dev eth1 egress chain 5 pref 7 protocol all matchall action goto chain 4
# policy-map WAN, class class-default / NOTUDP
tc filter add dev eth1 egress chain 6 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x28 retain 0xfc pipe action csum ip4h pipe action goto chain 10
tc filter add dev eth1 egress chain 6 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x28 retain 0xfc pipe action goto chain 10
tc filter add dev eth1 egress chain 6 pref 3 protocol all matchall action goto chain 10
# policy-map WAN, class class-default / class-default
tc filter add dev eth1 egress chain 7 pref 1 protocol all matchall action goto chain 8
tc filter add dev eth1 egress chain 8 pref 1 protocol all matchall action skbedit priority 1:13 pipe action pass
# policy-map WAN, class class-default / VOICE
tc filter add dev eth1 egress chain 9 pref 1 protocol all matchall action skbedit priority 1:11 pipe action police rate 4mbit burst 100000 conform-exceed drop/pipe action pass
# policy-map WAN, class class-default / NOTUDP
tc filter add dev eth1 egress chain 10 pref 1 protocol all matchall action skbedit priority 1:13 pipe action police rate 500kbit burst 15625 conform-exceed goto chain 11 / pipe action pass
tc filter add dev eth1 egress chain 11 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x20 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth1 egress chain 11 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x20 retain 0xfc pipe action pass
tc filter add dev eth1 egress chain 11 pref 3 protocol all matchall action pass
