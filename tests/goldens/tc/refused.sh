#!/bin/sh -e
# QoS of REFUSED for tc(8), Linux 5.1 or later.
# Devices: eth0 is FastEthernet0/0, eth1 is FastEthernet0/1.
#
# Refused: the kernel cannot do this:
#   line 18: FastEthernet0/0: rate-limit input: a kernel bucket has no extended burst
#   line 15: FastEthernet0/0 input, policy-map IN, class GOLD: police violate-action: single rate,
#     three colours (RFC 2697): a kernel bucket cannot fill another one
#   line 20: FastEthernet0/1: tx-ring-limit: a virtual device has no ring; on a network card use
#     `ethtool -G`
#   line 21: FastEthernet0/1: ip access-group in: plans do not include forwarding filters
#   line 9: FastEthernet0/1 output, policy-map OUT, class GOLD: queue-limit dscp: a kernel FIFO has
#     one limit for all packets
#   line 12: FastEthernet0/1 output, policy-map OUT, class class-default: random-detect: red has one
#     queue, fair-queue needs several
#
# Exact:
#   line 7: FastEthernet0/1 output, policy-map OUT, class GOLD: bandwidth: rate and quantum of HTB:
#     0.8% of the rate that priority leaves
#   line 9: FastEthernet0/1 output, policy-map OUT, class GOLD: queue-limit: pfifo of 64 packets
#
# No commands are printed while an action is refused.
