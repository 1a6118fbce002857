#!/bin/sh -e
# QoS of ISR for tc(8), Linux 5.1 or later.
# Devices: eth0 is GigabitEthernet0/0/0.
#
# Approximate, with the difference:
#   line 18: GigabitEthernet0/0/0 output, policy-map SITES, class SITE1: shape average: the same
#     rate; bursts of up to 3028 bytes after a pause, 1522 bytes on the router
#   line 22: GigabitEthernet0/0/0 output, policy-map SITES, class SITE2: shape average: the same
#     rate; bursts of up to 3028 bytes after a pause, 1522 bytes on the router
#   line 20: GigabitEthernet0/0/0 output, policy-map SITES, class SITE1: service-policy: the rate
#     that other classes leave is shared by the number of busy classes below each
#   line 15: GigabitEthernet0/0/0 output, policy-map SITE, class SITE1 / VOICE: priority: always
#     policed; the router polices only while the line is congested
#   line 24: GigabitEthernet0/0/0 output, policy-map SITES, class SITE2: service-policy: the rate
#     that other classes leave is shared by the number of busy classes below each
#   line 15: GigabitEthernet0/0/0 output, policy-map SITE, class SITE2 / VOICE: priority: always
#     policed; the router polices only while the line is congested
#
# Exact:
#   line 19: GigabitEthernet0/0/0 output, policy-map SITES, class SITE1: bandwidth remaining ratio:
#     quantum of HTB, a share of the rate left by minimum rates
#   line 23: GigabitEthernet0/0/0 output, policy-map SITES, class SITE2: bandwidth remaining ratio:
#     quantum of HTB, a share of the rate left by minimum rates
#   line 26: GigabitEthernet0/0/0 output, policy-map SITES, class class-default: bandwidth remaining
#     ratio: quantum of HTB, a share of the rate left by minimum rates
#   line 25: GigabitEthernet0/0/0 output, policy-map SITES, class class-default: queue-limit: pfifo
#     of 83 packets

# GigabitEthernet0/0/0, policies: output SITES
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 root 2>/dev/null || true
tc qdisc del dev eth0 clsact 2>/dev/null || true
# policy-map SITES
tc qdisc add dev eth0 root handle 1: htb default 0x16
# line
tc class add dev eth0 parent 1: classid 1:1 htb rate 1gbit ceil 1gbit burst 125000 cburst 125000 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map SITES, class SITE1
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 4mbit burst 1514 cburst 1514 prio 2 quantum 3028
# policy-map SITE, class SITE1 / VOICE
tc class add dev eth0 parent 1:10 classid 1:11 htb rate 4mbit ceil 4mbit burst 1514 cburst 1514 prio 0 quantum 1514
tc qdisc add dev eth0 parent 1:11 handle 11: pfifo limit 512
# policy-map SITE, class SITE1 / class-default
tc class add dev eth0 parent 1:10 classid 1:12 htb rate 8kbit ceil 4mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:12 handle 12: pfifo limit 64
# policy-map SITES, class SITE2
tc class add dev eth0 parent 1:1 classid 1:13 htb rate 2mbit ceil 2mbit burst 1514 cburst 1514 prio 2 quantum 1514
# policy-map SITE, class SITE2 / VOICE
tc class add dev eth0 parent 1:13 classid 1:14 htb rate 2mbit ceil 2mbit burst 1514 cburst 1514 prio 0 quantum 1514
tc qdisc add dev eth0 parent 1:14 handle 14: pfifo limit 512
# policy-map SITE, class SITE2 / class-default
tc class add dev eth0 parent 1:13 classid 1:15 htb rate 8kbit ceil 2mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:15 handle 15: pfifo limit 64
# policy-map SITES, class class-default
tc class add dev eth0 parent 1:1 classid 1:16 htb rate 8kbit ceil 1gbit burst 1514 cburst 125000 prio 2 quantum 1514
tc qdisc add dev eth0 parent 1:16 handle 16: pfifo limit 83
# filters
tc qdisc add dev eth0 clsact
# policy-map SITES
tc filter add dev eth0 egress chain 0 pref 1 protocol arp matchall action pass
# policy-map SITES, class SITE1
tc filter add dev eth0 egress chain 0 pref 2 protocol ip flower dst_ip 10.1.0.0/16 action goto chain 1
# policy-map SITES, class SITE2
tc filter add dev eth0 egress chain 0 pref 3 protocol ip flower dst_ip 10.2.0.0/16 action goto chain 2
# policy-map SITES, class class-default
tc filter add dev eth0 egress chain 0 pref 4 protocol all matchall action goto chain 3
# policy-map SITE, class SITE1 / VOICE
tc filter add dev eth0 egress chain 1 pref 1 protocol ip flower ip_tos 0xb8/0xfc action goto chain 4
tc filter add dev eth0 egress chain 1 pref 2 protocol ipv6 flower ip_tos 0xb8/0xfc action goto chain 4
# policy-map SITE, class SITE1 / class-default
tc filter add dev eth0 egress chain 1 pref 3 protocol all matchall action goto chain 5
# policy-map SITE, class SITE2 / VOICE
tc filter add dev eth0 egress chain 2 pref 1 protocol ip flower ip_tos 0xb8/0xfc action goto chain 6
tc filter add dev eth0 egress chain 2 pref 2 protocol ipv6 flower ip_tos 0xb8/0xfc action goto chain 6
# policy-map SITE, class SITE2 / class-default
tc filter add dev eth0 egress chain 2 pref 3 protocol all matchall action goto chain 7
# policy-map SITES, class class-default
tc filter add dev eth0 egress chain 3 pref 1 protocol all matchall action skbedit priority 1:16 pipe action pass
# policy-map SITE, class SITE1 / VOICE
tc filter add dev eth0 egress chain 4 pref 1 protocol all matchall action skbedit priority 1:11 pipe action police rate 200kbit burst 5000 conform-exceed drop/pipe action pass
# policy-map SITE, class SITE1 / class-default
tc filter add dev eth0 egress chain 5 pref 1 protocol all matchall action skbedit priority 1:12 pipe action pass
# policy-map SITE, class SITE2 / VOICE
tc filter add dev eth0 egress chain 6 pref 1 protocol all matchall action skbedit priority 1:14 pipe action police rate 200kbit burst 5000 conform-exceed drop/pipe action pass
# policy-map SITE, class SITE2 / class-default
tc filter add dev eth0 egress chain 7 pref 1 protocol all matchall action skbedit priority 1:15 pipe action pass
