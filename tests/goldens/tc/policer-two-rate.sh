#!/bin/sh -e
# QoS of PE for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/0, eth1 is FastEthernet0/1.
#
# Exact:
#   line 7: FastEthernet0/0 input, policy-map CUSTOMER, class PREMIUM: police: act_police, decisions
#     equal within 0.11 bytes of the bucket
#   line 12: FastEthernet0/0 input, policy-map CUSTOMER, class class-default: police: act_police,
#     decisions equal within 0.25 bytes of the bucket
#   line 7: FastEthernet0/1 output, policy-map CUSTOMER, class PREMIUM: police: act_police,
#     decisions equal within 0.11 bytes of the bucket
#   line 12: FastEthernet0/1 output, policy-map CUSTOMER, class class-default: police: act_police,
#     decisions equal within 0.25 bytes of the bucket

# FastEthernet0/0, policies: input CUSTOMER
ethtool -K eth0 gro off gso off tso off
tc qdisc del dev eth0 clsact 2>/dev/null || true
tc qdisc add dev eth0 clsact
# policy-map CUSTOMER
tc filter add dev eth0 ingress chain 0 pref 1 protocol arp matchall action pass
# policy-map CUSTOMER, class PREMIUM
tc filter add dev eth0 ingress chain 0 pref 2 protocol ip flower ip_tos 0x68/0xfc action goto chain 1
tc filter add dev eth0 ingress chain 0 pref 3 protocol ipv6 flower ip_tos 0x68/0xfc action goto chain 1
tc filter add dev eth0 ingress chain 0 pref 4 protocol ip flower ip_tos 0x70/0xfc action goto chain 1
tc filter add dev eth0 ingress chain 0 pref 5 protocol ipv6 flower ip_tos 0x70/0xfc action goto chain 1
tc filter add dev eth0 ingress chain 0 pref 6 protocol ip flower ip_tos 0x78/0xfc action goto chain 1
tc filter add dev eth0 ingress chain 0 pref 7 protocol ipv6 flower ip_tos 0x78/0xfc action goto chain 1
# policy-map CUSTOMER, class class-default
tc filter add dev eth0 ingress chain 0 pref 8 protocol all matchall action goto chain 2
# policy-map CUSTOMER, class PREMIUM
tc filter add dev eth0 ingress chain 1 pref 1 protocol all matchall action police rate 900kbit burst 7000 overhead 14 conform-exceed drop/pipe action police rate 500kbit burst 4000 overhead 14 conform-exceed goto chain 3 / pipe action goto chain 4
# policy-map CUSTOMER, class class-default
tc filter add dev eth0 ingress chain 2 pref 1 protocol all matchall action police rate 2mbit burst 62500 overhead 14 conform-exceed drop/pipe action pass
# policy-map CUSTOMER, class PREMIUM
tc filter add dev eth0 ingress chain 3 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x70 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth0 ingress chain 3 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x70 retain 0xfc pipe action pass
tc filter add dev eth0 ingress chain 3 pref 3 protocol all matchall action pass
tc filter add dev eth0 ingress chain 4 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x68 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth0 ingress chain 4 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x68 retain 0xfc pipe action pass
tc filter add dev eth0 ingress chain 4 pref 3 protocol all matchall action pass

# FastEthernet0/1, policies: output CUSTOMER
ethtool -K eth1 gro off gso off tso off
tc qdisc del dev eth1 clsact 2>/dev/null || true
tc qdisc add dev eth1 clsact
# policy-map CUSTOMER
tc filter add dev eth1 egress chain 0 pref 1 protocol arp matchall action pass
# policy-map CUSTOMER, class PREMIUM
tc filter add dev eth1 egress chain 0 pref 2 protocol ip flower ip_tos 0x68/0xfc action goto chain 1
tc filter add dev eth1 egress chain 0 pref 3 protocol ipv6 flower ip_tos 0x68/0xfc action goto chain 1
tc filter add dev eth1 egress chain 0 pref 4 protocol ip flower ip_tos 0x70/0xfc action goto chain 1
tc filter add dev eth1 egress chain 0 pref 5 protocol ipv6 flower ip_tos 0x70/0xfc action goto chain 1
tc filter add dev eth1 egress chain 0 pref 6 protocol ip flower ip_tos 0x78/0xfc action goto chain 1
tc filter add dev eth1 egress chain 0 pref 7 protocol ipv6 flower ip_tos 0x78/0xfc action goto chain 1
# policy-map CUSTOMER, class class-default
tc filter add dev eth1 egress chain 0 pref 8 protocol all matchall action goto chain 2
# policy-map CUSTOMER, class PREMIUM
tc filter add dev eth1 egress chain 1 pref 1 protocol all matchall action police rate 900kbit burst 7000 conform-exceed drop/pipe action police rate 500kbit burst 4000 conform-exceed goto chain 3 / pipe action goto chain 4
# policy-map CUSTOMER, class class-default
tc filter add dev eth1 egress chain 2 pref 1 protocol all matchall action police rate 2mbit burst 62500 conform-exceed drop/pipe action pass
# policy-map CUSTOMER, class PREMIUM
tc filter add dev eth1 egress chain 3 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x70 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth1 egress chain 3 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x70 retain 0xfc pipe action pass
tc filter add dev eth1 egress chain 3 pref 3 protocol all matchall action pass
tc filter add dev eth1 egress chain 4 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x68 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth1 egress chain 4 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x68 retain 0xfc pipe action pass
tc filter add dev eth1 egress chain 4 pref 3 protocol all matchall action pass
