#!/bin/sh -e
# QoS of LOGIC for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/1.
#
# Approximate, with the difference:
#   line 3: FastEthernet0/1 output, policy-map LOGIC, class BUSINESS: match of ports: fragments have
#     no visible ports: a fragment matches no entry with ports
#   line 9: FastEthernet0/1 output, policy-map LOGIC, class NOT-BUSINESS: match of ports: fragments
#     have no visible ports: a fragment matches no entry with ports
#
# Exact:
#   line 23: FastEthernet0/1 output, policy-map LOGIC, class SMALL: set dscp: pedit
#   line 25: FastEthernet0/1 output, policy-map LOGIC, class BUSINESS: set dscp: pedit
#   line 27: FastEthernet0/1 output, policy-map LOGIC, class ODD-HOSTS: set dscp: pedit
#   line 29: FastEthernet0/1 output, policy-map LOGIC, class NOT-BUSINESS: police: act_police,
#     decisions equal within 0.12 bytes of the bucket

# FastEthernet0/1, policies: output LOGIC
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 clsact 2>/dev/null || true
tc qdisc add dev eth0 clsact
# policy-map LOGIC
tc filter add dev eth0 egress chain 0 pref 1 protocol arp matchall action pass
# policy-map LOGIC, class SMALL
tc filter add dev eth0 egress chain 0 pref 2 protocol ip basic match 'cmp(u16 at 2 layer network lt 201) and cmp(u8 at 1 layer network mask 0xfc eq 0xb8)' action goto chain 2
tc filter add dev eth0 egress chain 0 pref 3 protocol ip basic match 'cmp(u16 at 2 layer network lt 201)' action goto chain 1
tc filter add dev eth0 egress chain 0 pref 4 protocol ipv6 basic match 'cmp(u16 at 4 layer network lt 161) and cmp(u16 at 0 layer network mask 0xfc0 eq 0xb80)' action goto chain 2
tc filter add dev eth0 egress chain 0 pref 5 protocol ipv6 basic match 'cmp(u16 at 4 layer network lt 161)' action goto chain 1
tc filter add dev eth0 egress chain 0 pref 6 protocol all matchall action goto chain 2
tc filter add dev eth0 egress chain 1 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x40 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth0 egress chain 1 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x40 retain 0xfc pipe action pass
tc filter add dev eth0 egress chain 1 pref 3 protocol all matchall action pass
# policy-map LOGIC, class BUSINESS
tc filter add dev eth0 egress chain 2 pref 1 protocol ip flower ip_tos 0x68/0xfc action goto chain 3
tc filter add dev eth0 egress chain 2 pref 2 protocol ipv6 flower ip_tos 0x68/0xfc action goto chain 3
tc filter add dev eth0 egress chain 2 pref 3 protocol ip flower ip_proto tcp dst_ip 10.0.0.9/32 dst_port 80 action goto chain 4
tc filter add dev eth0 egress chain 2 pref 4 protocol ip flower ip_proto tcp dst_ip 10.0.0.0/24 dst_port 80 action goto chain 3
tc filter add dev eth0 egress chain 2 pref 5 protocol ip flower ip_proto tcp tcp_flags 0x10/0x10 action goto chain 3
tc filter add dev eth0 egress chain 2 pref 6 protocol ip flower ip_proto tcp tcp_flags 0x4/0x4 action goto chain 3
tc filter add dev eth0 egress chain 2 pref 7 protocol ip flower ip_proto icmp type 8 action goto chain 3
tc filter add dev eth0 egress chain 2 pref 8 protocol all matchall action goto chain 4
tc filter add dev eth0 egress chain 3 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x48 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth0 egress chain 3 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x48 retain 0xfc pipe action pass
tc filter add dev eth0 egress chain 3 pref 3 protocol all matchall action pass
# policy-map LOGIC, class ODD-HOSTS
tc filter add dev eth0 egress chain 4 pref 1 protocol ip basic match 'cmp(u32 at 12 layer network mask 0xffff0001 eq 0xa000001)' action goto chain 5
# policy-map LOGIC, class NOT-BUSINESS
tc filter add dev eth0 egress chain 4 pref 2 protocol all matchall action goto chain 8
# policy-map LOGIC, class ODD-HOSTS
tc filter add dev eth0 egress chain 5 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x30 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth0 egress chain 5 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x30 retain 0xfc pipe action pass
tc filter add dev eth0 egress chain 5 pref 3 protocol all matchall action pass
# policy-map LOGIC, class NOT-BUSINESS
tc filter add dev eth0 egress chain 6 pref 1 protocol all matchall action police rate 1mbit burst 31250 conform-exceed drop/pipe action pass
# policy-map LOGIC, class class-default
tc filter add dev eth0 egress chain 7 pref 1 protocol all matchall action goto chain 9
# policy-map LOGIC, class NOT-BUSINESS
tc filter add dev eth0 egress chain 8 pref 1 protocol ip flower ip_tos 0x68/0xfc action goto chain 7
tc filter add dev eth0 egress chain 8 pref 2 protocol ipv6 flower ip_tos 0x68/0xfc action goto chain 7
tc filter add dev eth0 egress chain 8 pref 3 protocol ip flower ip_proto tcp dst_ip 10.0.0.9/32 dst_port 80 action goto chain 6
tc filter add dev eth0 egress chain 8 pref 4 protocol ip flower ip_proto tcp dst_ip 10.0.0.0/24 dst_port 80 action goto chain 7
tc filter add dev eth0 egress chain 8 pref 5 protocol ip flower ip_proto tcp tcp_flags 0x10/0x10 action goto chain 7
tc filter add dev eth0 egress chain 8 pref 6 protocol ip flower ip_proto tcp tcp_flags 0x4/0x4 action goto chain 7
tc filter add dev eth0 egress chain 8 pref 7 protocol ip flower ip_proto icmp type 8 action goto chain 7
tc filter add dev eth0 egress chain 8 pref 8 protocol ip flower ip_proto tcp action goto chain 6
tc filter add dev eth0 egress chain 8 pref 9 protocol ipv6 flower ip_proto tcp action goto chain 6
tc filter add dev eth0 egress chain 8 pref 10 protocol all matchall action goto chain 7
# policy-map LOGIC, class class-default
tc filter add dev eth0 egress chain 9 pref 1 protocol all matchall action pass
