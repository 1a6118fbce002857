#!/bin/sh -e
# QoS of CPE for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/0.
#
# Exact:
#   line 7: FastEthernet0/0 input, policy-map FROM-LAN, class VOICE: police: act_police, decisions
#     equal within 0.016 bytes of the bucket
#   line 9: FastEthernet0/0 input, policy-map FROM-LAN, class class-default: police: act_police,
#     decisions equal within 1.2 bytes of the bucket

# FastEthernet0/0, policies: input FROM-LAN
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
tc filter add dev eth0 ingress chain 2 pref 1 protocol all matchall action police rate 10mbit burst 12500 overhead 14 conform-exceed drop/pipe action goto chain 3
tc filter add dev eth0 ingress chain 3 pref 1 protocol ip matchall action pedit ex munge ip dsfield set 0x0 retain 0xfc pipe action csum ip4h pipe action pass
tc filter add dev eth0 ingress chain 3 pref 2 protocol ipv6 matchall action pedit ex munge ip6 traffic_class set 0x0 retain 0xfc pipe action pass
tc filter add dev eth0 ingress chain 3 pref 3 protocol all matchall action pass
