"""Words of IOS commands that are in no other table of qoslab, and remain unchanged in anonymised output."""

from __future__ import annotations

_TEXT = """
access access-class accounting acct action activate address address-family aes ah algorithm all allow allowed always any
applet area arp as-path auth authentication authorization auto auto-summary autonomous-system bandwidth bearer before
bgp bidirectional both bridge-domain broadcast buffered callin cdp certificate chain channel-group chap clear client
cli codec command common community con configured confederation connected console context control count critical crypto
cts dampening day days default default-router delay deny des dest destination detail dh dhcp dial-peer dialer-group
direction disable discard distance distribute-list dmvpn dns domain domain-name down drop dscp dtmf-relay dynamic echo
eigrp emergency enable enabled encapsulation encr encrypted encryption end entry eq errors esp esp-3des esp-aes esp-gcm
esp-md5-hmac esp-sha-hmac esp-sha256-hmac established event ever exact exec exit exit-address-family exit-vrf export
extended external facility failed fast fingerprint flash flow-export force forever format forwarding frequency from ftp
full g711alaw g711ulaw g722-64 g729r8 gateway ge ggsn global gre group gt half hash hello-interval high host hour http
https icmp-echo icmp-jitter identity ike ikev2 import in inbound inform informs initiate input inside inspect instance
integrity interface internal internet interval ip ipsec ipsec-isakmp ipv4 ipv4-family ipv6 isakmp keepalive key
key-string keyring last-resort layer2 lease level lifetime limit line linkdown linkup list listen local location log
login loopback low lt mac main managed map mask match maximum-paths max-metric md5 medium message-digest metric mgmt
min minute mode mon monitor month motd mpls ms mtu multicast multipoint name name-server native nbar neighbor nested
netflow netmask network network-id network-statement never next-hop-self nhs no none nonegotiate normal nssa ntp off on
open originate ospf out outbound output outside overload pap parent-route passive-interface password peer peer-group
per-user permit pfs pid ping point-to-point policy policy-map pool port pre-share preempt prefix-list preference
prepend preshared-key primary private privilege process profile protocol psk public pull q931 qos query quit radius
range rate reachability receive redistribute reject relay-agent remote remote-as request resolve retransmit retries
reverse revocation-check ro rotary route route-map route-reflector-client router router-id rsa rtp-nte rtr running rw
sa same-security schedule secondary secret self-signed send send-community sequence seq server session set sha sha256
sip snmp soft soft-reconfiguration source source-interface spoke ssh standard start-time static status stub subnets
subordinate summary-address suite-b sup synchronization syslog tag target tcp telnet test threshold timeout timer
timers track traffic transform-set transport trap traps trunk trustpoint ttl tty tunnel type udp unicast unit up
update-source use-bia user v1 v2c v3 version via view voice-class voip vpn vrf vty warning warnings wildcard write
xauth zone priv noauth security-level md sn ci asymmetric timestamps msec datetime localtime show-timezone debug
new-model session-id tacacs+ password-encryption pad cef classless active nonexistent negotiated unnumbered dhcp
class-default udi utilization disable-kernel-core low-watermark business-relevance business-relevant traffic-class
business-irrelevant voip-telephony multimedia-conferencing multimedia-streaming real-time-interactive ops-admin-mgmt
broadcast-video signaling transactional-data bulk-data network-control application-group application-family category
sub-category p2p-technology tunnel encrypted mask-request audio video user-defined ssl unknown self encapsulated
pool-member dial-pool-number pppoe pppoe-client aal5mux aal5snap aal5ciscoppp oam-pvc slip in-band interleave links
multilink-group ilmi-keepalive point-to-multipoint interface-dlci service instance vcs dlci relay pvc svc qos-group
dot1q isl vlan-id timeslots esf sf crc4 no-crc4 b8zs ami hdb3 cablelength framing linecode unframed rdsl adsl2 vdsl
port-channel-aggregate lacp pagp desirable lan-base provision authorization-exec inherit mgmt-intf pre-classify
appxk9 ipbasek9 securityk9 universalk9 datak9 uck9 network-advantage network-premier network-essentials addon
dna-advantage dna-premier dna-essentials point extendable vlan access member cir bc be half-duplex full-duplex
"""
FURTHER_WORDS = frozenset(_TEXT.split())
"""Words that remain unchanged."""
