#!/bin/sh -e
# QoS of CORE for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/0, eth1 is FastEthernet0/1.
#
# Approximate, with the difference:
#   line 7: FastEthernet0/0 input, policy-map IN, class TELNET: match of ports: fragments have no
#     visible ports: a fragment matches no entry with ports
#
# Exact:
#   line 15: FastEthernet0/0 input, policy-map IN, class TELNET: set ip precedence: pedit
#   line 15: FastEthernet0/0 input, policy-map IN, class TELNET: set qos-group: lowest 8 bits of the
#     packet's mark
#   line 17: FastEthernet0/0 input, policy-map IN, class class-default: set dscp: pedit
#   line 20: FastEthernet0/1 output, policy-map OUT, class GROUP5: bandwidth percent: rate and
#     quantum of HTB: 40.0% of the rate that priority leaves
#   line 22: FastEthernet0/1 output, policy-map OUT, class LAN: bandwidth percent: rate and quantum
#     of HTB: 10.0% of the rate that priority leaves
#   line 19: FastEthernet0/1 output, policy-map OUT, class GROUP5: queue-limit: pfifo of 64 packets
#   line 21: FastEthernet0/1 output, policy-map OUT, class LAN: queue-limit: pfifo of 64 packets

# FastEthernet0/0, policies: input IN
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 clsact 2>/dev/null || true
tc qdisc add dev eth0 clsact
# policy-map IN, class TELNET
tc filter add dev eth0 ingress chain 0 pref 1 protocol ip flower ip_proto tcp dst_port 23 action goto chain 1
tc filter add dev eth0 ingress chain 0 pref 2 protocol ip flower ip_proto tcp src_port 23 action goto chain 1
# policy-map IN, class class-default
tc filter add dev eth0 ingress chain 0 pref 3 protocol all matchall action goto chain 2
# policy-map IN, class TELNET
tc filter add dev eth0 ingress chain 1 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0xc0 retain 0xe0 pipe action csum ip4h pipe action skbedit mark 0x5/0xff pipe action pass
tc filter add dev eth0 ingress chain 1 pref 2 protocol all matchall action skbedit mark 0x5/0xff pipe action pass
# policy-map IN, class class-default
tc filter add dev eth0 ingress chain 2 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x0 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth0 ingress chain 2 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x0 retain 0xfc pipe action pass
tc filter add dev eth0 ingress chain 2 pref 3 protocol all matchall action pass

# FastEthernet0/1, policies: output OUT
ethtool -K eth1 gro off gso off tso off
tc qdisc del dev eth1 root 2>/dev/null || true
tc qdisc del dev eth1 clsact 2>/dev/null || true
# policy-map OUT
tc qdisc add dev eth1 root handle 1: htb default 0x12
# line
tc class add dev eth1 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit burst 1514 cburst 1514 prio 0 quantum 1514 overhead 24 mpu 84
# policy-map OUT, class GROUP5
tc class add dev eth1 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 6056
tc qdisc add dev eth1 parent 1:10 handle 10: pfifo limit 64
# policy-map OUT, class LAN
tc class add dev eth1 parent 1:1 classid 1:11 htb rate 1mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 1514
tc qdisc add dev eth1 parent 1:11 handle 11: pfifo limit 64
# policy-map OUT, class class-default
tc class add dev eth1 parent 1:1 classid 1:12 htb rate 5mbit ceil 10mbit burst 1514 cburst 1514 prio 2 quantum 7570
tc qdisc add dev eth1 parent 1:12 handle 12: pfifo limit 64
# filters
tc qdisc add dev eth1 clsact
# policy-map OUT, class GROUP5
tc filter add dev eth1 egress chain 0 pref 1 protocol all basic match 'meta(nf_mark mask 0xff eq 5)' action goto chain 1
# policy-map OUT, class LAN
tc filter add dev eth1 egress chain 0 pref 2 protocol all flower indev eth0 action goto chain 2
# policy-map OUT, class class-default
tc filter add dev eth1 egress chain 0 pref 3 protocol all matchall action goto chain 3
# policy-map OUT, class GROUP5
tc filter add dev eth1 egress chain 1 pref 1 protocol all matchall action skbedit priority 1:10 pipe action pass
# policy-map OUT, class LAN
tc filter add dev eth1 egress chain 2 pref 1 protocol all matchall action skbedit priority 1:11 pipe action pass
# policy-map OUT, class class-default
tc filter add dev eth1 egress chain 3 pref 1 protocol all matchall action skbedit priority 1:12 pipe action pass
