"""Running configurations as routers and switches of several releases print them; written for these tests."""

from __future__ import annotations

R2901 = """\
Building configuration...

Current configuration : 3127 bytes
!
! Last configuration change at 07:12:44 UTC Tue Feb 4 2014 by admin
! NVRAM config last updated at 07:13:02 UTC Tue Feb 4 2014 by admin
version 15.1
service timestamps debug datetime msec
service timestamps log datetime msec
service password-encryption
!
hostname branch-17
!
boot-start-marker
boot system flash0:c2900-universalk9-mz.SPA.151-4.M4.bin
boot-end-marker
!
logging buffered 51200 warnings
!
no aaa new-model
!
no ipv6 cef
ip source-route
ip cef
!
ip dhcp excluded-address 10.17.0.1 10.17.0.20
!
ip dhcp pool STAFF
 network 10.17.0.0 255.255.255.0
 default-router 10.17.0.1
 dns-server 10.1.0.53 10.2.0.53
!
ip domain name example.net
multilink bundle-name authenticated
!
license udi pid CISCO2901/K9 sn FCZ0000C0AA
license boot module c2900 technology-package securityk9
!
redundancy
!
ip ssh version 2
!
class-map match-any VOICE
 match ip dscp ef
 match protocol rtp audio
class-map type inspect match-any WEB
 match protocol http
 match protocol https
!
policy-map BRANCH-OUT
 class VOICE
  priority 256
 class class-default
  fair-queue
  random-detect
policy-map type inspect LAN-TO-WAN
 class type inspect WEB
  inspect
 class class-default
  drop log
!
zone security LAN
zone security WAN
zone-pair security OUT source LAN destination WAN
 service-policy type inspect LAN-TO-WAN
!
crypto isakmp policy 1
 encr aes 256
 authentication pre-share
 group 5
!
crypto ipsec transform-set AES esp-aes 256 esp-sha-hmac
 mode tunnel
!
crypto map HQ 10 ipsec-isakmp
 description to headquarters
 set peer 192.0.2.1
 set transform-set AES
 match address 101
!
interface Embedded-Service-Engine0/0
 no ip address
 shutdown
!
interface GigabitEthernet0/0
 description LAN
 ip address 10.17.0.1 255.255.255.0
 ip nbar protocol-discovery
 ip nat inside
 ip virtual-reassembly in
 zone-member security LAN
 duplex auto
 speed auto
!
interface GigabitEthernet0/1
 description WAN
 bandwidth 2048
 ip address 198.51.100.18 255.255.255.252
 ip nat outside
 ip virtual-reassembly in
 zone-member security WAN
 duplex auto
 speed auto
 crypto map HQ
!
router eigrp 17
 network 10.17.0.0 0.0.0.255
 passive-interface GigabitEthernet0/0
!
ip forward-protocol nd
!
no ip http server
no ip http secure-server
!
ip nat inside source list 10 interface GigabitEthernet0/1 overload
ip route 0.0.0.0 0.0.0.0 198.51.100.17
!
access-list 10 permit 10.17.0.0 0.0.0.255
access-list 101 permit ip 10.17.0.0 0.0.0.255 10.1.0.0 0.0.255.255
!
control-plane
!
banner login ^C
interface GigabitEthernet0/1 belongs to the provider.
^C
!
line con 0
 logging synchronous
line aux 0
line 2
 no activation-character
 no exec
 transport preferred none
 transport input all
 transport output pad telnet rlogin lapb-ta mop udptn v120 ssh
 stopbits 1
line vty 0 4
 access-class 10 in
 login local
 transport input ssh
!
scheduler allocate 20000 1000
ntp server 10.1.0.123
end
"""

R2811 = """\
Building configuration...

Current configuration : 1844 bytes
!
version 12.4
service timestamps debug uptime
service timestamps log uptime
no service password-encryption
!
hostname lab-b
!
boot-start-marker
boot-end-marker
!
no aaa new-model
memory-size iomem 10
ip subnet-zero
!
ip cef
!
frame-relay switching
!
voice-card 0
 no dspfarm
!
class-map match-all BULK
 match access-group name BULK
!
policy-map HQ
 class BULK
   shape average 256000
!
controller E1 0/2/0
 channel-group 0 timeslots 1-8
!
interface FastEthernet0/0
 ip address 172.20.1.1 255.255.255.0
 ip pim sparse-dense-mode
 standby 1 ip 172.20.1.254
 standby 1 preempt
 duplex auto
 speed auto
!
interface FastEthernet0/1
 no ip address
 shutdown
 duplex auto
 speed auto
!
interface Serial0/1/0
 bandwidth 512
 no ip address
 encapsulation frame-relay
 no fair-queue
 frame-relay lmi-type ansi
!
interface Serial0/1/0.101 point-to-point
 ip address 172.20.9.1 255.255.255.252
 frame-relay interface-dlci 101
  class SHAPED
!
router ospf 1
 log-adjacency-changes
 network 172.20.0.0 0.0.255.255 area 0
!
ip classless
!
ip http server
!
ip access-list extended BULK
 permit tcp any any eq ftp-data
!
map-class frame-relay SHAPED
 frame-relay cir 256000
!
dial-peer voice 1 pots
 destination-pattern 1...
!
line con 0
line aux 0
line vty 0 4
 login
!
ntp clock-period 17180011
ntp server 172.20.1.10
end
"""

S2960 = """\
Building configuration...

Current configuration : 2466 bytes
!
version 12.2
no service pad
service timestamps debug datetime msec
service timestamps log datetime msec
service password-encryption
!
hostname floor-3
!
boot-start-marker
boot-end-marker
!
no aaa new-model
system mtu routing 1500
vtp mode transparent
ip subnet-zero
!
ip dhcp snooping vlan 10
ip dhcp snooping
!
mls qos map cos-dscp 0 8 16 26 32 46 48 56
mls qos
!
errdisable recovery cause psecure-violation
errdisable recovery interval 30
!
spanning-tree mode rapid-pvst
spanning-tree extend system-id
!
vlan internal allocation policy ascending
!
vlan 10
 name staff
!
vlan 20
 name phones
!
interface FastEthernet0/1
 description desk 3-01
 switchport access vlan 10
 switchport mode access
 switchport voice vlan 20
 switchport port-security
 srr-queue bandwidth share 10 10 60 20
 priority-queue out
 mls qos trust device cisco-phone
 mls qos trust cos
 spanning-tree portfast
 spanning-tree bpduguard enable
 ip dhcp snooping limit rate 15
!
interface FastEthernet0/2
 switchport access vlan 10
 switchport mode access
 storm-control broadcast level 5.00
 spanning-tree portfast
!
interface GigabitEthernet0/1
 description uplink
 switchport mode trunk
 mls qos trust dscp
 ip dhcp snooping trust
!
interface Vlan1
 no ip address
 no ip route-cache
 shutdown
!
interface Vlan10
 ip address 10.3.0.2 255.255.255.0
 no ip route-cache
!
ip default-gateway 10.3.0.1
ip http server
ip sla enable reaction-alerts
!
line con 0
line vty 0 4
 login local
line vty 5 15
 login local
!
end
"""

S3750 = """\
Building configuration...

Current configuration : 3388 bytes
!
! Last configuration change at 12:00:31 CET Mon Oct 3 2011
!
version 12.2
no service pad
service timestamps debug datetime msec
service timestamps log datetime msec
service password-encryption
service unsupported-transceiver
!
hostname core-a
!
boot-start-marker
boot-end-marker
!
aaa new-model
!
aaa authentication login default local
!
aaa session-id common
clock timezone CET 1
switch 1 provision ws-c3750g-24ts
switch 2 provision ws-c3750g-24ts
system mtu routing 1500
ip routing
no ip domain-lookup
!
mls qos map policed-dscp 24 26 46 to 0
mls qos srr-queue input bandwidth 90 10
mls qos srr-queue output dscp-map queue 1 threshold 3 40 41 42 43 44 45 46 47
mls qos queue-set output 1 threshold 2 138 138 92 400
mls qos
!
crypto pki trustpoint TP-self-signed-1000
 enrollment selfsigned
 revocation-check none
!
crypto pki certificate chain TP-self-signed-1000
 certificate self-signed 01
  30820240 308201A9 A0030201 02020101 300D0609 2A864886 F70D0101 04050030
        quit
!
spanning-tree mode pvst
spanning-tree extend system-id
spanning-tree vlan 1-4094 priority 8192
!
vlan internal allocation policy ascending
!
class-map match-all FROM-DESKS
 match access-group name DESKS
!
policy-map DESKS-IN
 class FROM-DESKS
  set dscp af11
  police 10000000 8000 exceed-action drop
!
interface Port-channel1
 switchport trunk encapsulation dot1q
 switchport mode trunk
!
interface GigabitEthernet1/0/1
 description server
 no switchport
 ip address 10.30.1.1 255.255.255.0
 ip pim sparse-mode
 srr-queue bandwidth shape 10 0 0 0
 mls qos trust dscp
!
interface GigabitEthernet1/0/2
 switchport access vlan 30
 switchport mode access
 udld port aggressive
 service-policy input DESKS-IN
!
interface GigabitEthernet1/0/3
 switchport trunk encapsulation dot1q
 switchport mode trunk
 channel-group 1 mode active
!
interface Vlan30
 ip address 10.30.0.1 255.255.255.0
 ip helper-address 10.1.0.67
!
router ospf 30
 log-adjacency-changes
 passive-interface default
 no passive-interface Vlan30
 network 10.30.0.0 0.0.255.255 area 0
!
ip classless
ip http server
ip http secure-server
!
ip access-list extended DESKS
 permit ip 10.30.0.0 0.0.0.255 any
ip sla enable reaction-alerts
!
snmp-server location room 1
!
line con 0
 exec-timeout 0 0
line vty 0 4
 transport input ssh
line vty 5 15
 transport input ssh
!
ntp clock-period 36028797
ntp server 10.1.0.123
end
"""

R881 = """\
Building configuration...

Current configuration : 4210 bytes
!
! Last configuration change at 16:20:05 CEST Fri Sep 18 2015 by ops
! NVRAM config last updated at 16:20:09 CEST Fri Sep 18 2015 by ops
!
version 15.2
no service pad
service tcp-keepalives-in
service timestamps debug datetime msec localtime show-timezone
service timestamps log datetime msec localtime show-timezone
service password-encryption
service sequence-numbers
!
hostname shop-42
!
boot-start-marker
boot system flash:c880data-universalk9-mz.152-4.M6.bin
boot-end-marker
!
security passwords min-length 8
logging buffered 16384
!
aaa new-model
!
aaa authentication login default local
aaa authorization exec default local
!
aaa session-id common
memory-size iomem 10
clock timezone CET 1 0
clock summer-time CEST recurring last Sun Mar 2:00 last Sun Oct 3:00
!
ip dhcp excluded-address 192.168.42.1 192.168.42.99
!
ip dhcp pool TILLS
 import all
 network 192.168.42.0 255.255.255.0
 default-router 192.168.42.1
 lease 0 8
!
no ip bootp server
ip inspect name OUT tcp router-traffic
ip inspect name OUT udp
ip cef
no ip domain lookup
ip domain name example.net
ipv6 unicast-routing
ipv6 cef
!
multilink bundle-name authenticated
!
license udi pid CISCO881-SEC-K9 sn FCZ0000C0AB
!
archive
 log config
  hidekeys
 path flash:before
 write-memory
!
vlan 20
 name guests
!
track 1 ip sla 1 reachability
 delay down 15 up 30
!
class-map match-any TILLS
 match access-group name TILLS
class-map match-all VOICE
 match ip dscp ef
!
policy-map WAN
 class VOICE
  priority 128
 class TILLS
  bandwidth 256
 class class-default
  fair-queue
policy-map SHAPED
 class class-default
  shape average 1800000
  service-policy WAN
!
crypto isakmp policy 10
 encr aes
 authentication pre-share
 group 2
crypto isakmp keepalive 10 periodic
!
crypto ipsec transform-set AES esp-aes esp-sha-hmac
 mode transport
!
crypto ipsec profile HQ
 set transform-set AES
!
interface Loopback0
 ip address 10.255.42.1 255.255.255.255
!
interface Tunnel0
 description to headquarters
 ip address 10.254.0.42 255.255.255.0
 no ip redirects
 ip mtu 1400
 ip nhrp network-id 1
 ip nhrp nhs 10.254.0.1
 ip tcp adjust-mss 1360
 tunnel source Dialer1
 tunnel mode gre multipoint
 tunnel protection ipsec profile HQ
!
interface FastEthernet0
 description till 1
 switchport access vlan 20
 no ip address
 spanning-tree portfast
!
interface FastEthernet1
 no ip address
!
interface FastEthernet2
 no ip address
 shutdown
!
interface FastEthernet3
 switchport mode trunk
 no ip address
!
interface FastEthernet4
 description WAN
 no ip address
 ip virtual-reassembly in
 duplex auto
 speed auto
 pppoe enable group global
 pppoe-client dial-pool-number 1
 no cdp enable
!
interface Vlan1
 ip address 192.168.42.1 255.255.255.0
 ip access-group 102 in
 ip nat inside
 ip virtual-reassembly in
 ip tcp adjust-mss 1452
 ipv6 address 2001:DB8:42::1/64
 ipv6 nd other-config-flag
!
interface Dialer1
 ip address negotiated
 ip mtu 1492
 ip nat outside
 ip inspect OUT out
 encapsulation ppp
 dialer pool 1
 dialer-group 1
 ppp authentication chap callin
 no cdp enable
 service-policy output SHAPED
!
router bgp 65042
 bgp log-neighbor-changes
 neighbor 10.254.0.1 remote-as 65000
 !
 address-family ipv4
  network 192.168.42.0
  neighbor 10.254.0.1 activate
 exit-address-family
!
ip forward-protocol nd
no ip http server
ip http secure-server
!
ip nat inside source route-map NAT interface Dialer1 overload
ip route 0.0.0.0 0.0.0.0 Dialer1
!
ip access-list extended TILLS
 permit tcp any host 10.1.0.80 eq 443
!
ip sla 1
 icmp-echo 10.254.0.1 source-interface Tunnel0
 frequency 10
ip sla schedule 1 life forever start-time now
logging host 10.1.0.99
access-list 102 deny   ip any host 192.168.42.255
access-list 102 permit ip any any
dialer-list 1 protocol ip permit
!
route-map NAT permit 10
 match ip address 102
!
control-plane
!
mgcp profile default
!
banner motd ^C
Only who may.
interface FastEthernet4 is the provider's.
^C
!
line con 0
 no modem enable
line aux 0
line vty 0 4
 privilege level 15
 transport input ssh
!
event manager applet BACK
 event track 1 state up
 action 1.0 syslog msg "tunnel is back"
!
ntp server 10.1.0.123 source Loopback0
end
"""

S3560CX = """\
Building configuration...

Current configuration : 5127 bytes
!
! Last configuration change at 08:14:51 UTC Mon Jan 11 2016 by ops
!
version 15.2
no service pad
service timestamps debug datetime msec
service timestamps log datetime msec
no service password-encryption
service compress-config
!
hostname desk-7
!
boot-start-marker
boot-end-marker
!
aaa new-model
!
aaa group server radius ISE
 server name ise-1
!
aaa authentication dot1x default group ISE
aaa authorization network default group ISE
!
aaa session-id common
system mtu routing 1500
ip routing
!
ip dhcp snooping vlan 30-31
no ip dhcp snooping information option
ip dhcp snooping
ip device tracking
!
flow record WHO
 match ipv4 source address
 collect counter bytes
!
mls qos map policed-dscp 24 to 8
mls qos map cos-dscp 0 8 16 24 32 46 48 56
mls qos srr-queue output cos-map queue 1 threshold 3 4 5
mls qos srr-queue output dscp-map queue 1 threshold 3 46
mls qos queue-set output 2 buffers 40 20 20 20
mls qos
!
crypto pki trustpoint TP-self-signed-7
 enrollment selfsigned
 revocation-check none
!
crypto pki certificate chain TP-self-signed-7
 certificate self-signed 01
  3082022B 30820194 A0030201 02020101 300D0609 2A864886 F70D0101 05050030
        quit
dot1x system-auth-control
!
diagnostic bootup level minimal
!
spanning-tree mode rapid-pvst
spanning-tree extend system-id
errdisable recovery cause bpduguard
no cdp run
!
vlan internal allocation policy ascending
!
vlan 30
 name desks
!
vlan 31
 name phones
!
lldp run
!
class-map match-any PHONES
 match ip dscp ef
class-map match-all SIGNALS
 match access-group name SIGNALS
!
policy-map DESK
 class PHONES
  police 128000 8000 exceed-action policed-dscp-transmit
 class SIGNALS
  set dscp cs3
!
interface GigabitEthernet1/0/1
 description desk 7-01
 switchport access vlan 30
 switchport mode access
 switchport voice vlan 31
 authentication event fail action next-method
 authentication host-mode multi-domain
 authentication port-control auto
 mab
 srr-queue bandwidth share 1 30 35 5
 priority-queue out
 dot1x pae authenticator
 spanning-tree portfast edge
 service-policy input DESK
!
interface GigabitEthernet1/0/2
 switchport access vlan 30
 switchport mode access
 power inline never
 ip verify source
!
interface GigabitEthernet1/0/3
 no switchport
 ip address 10.70.0.1 255.255.255.252
 mls qos trust dscp
!
interface TenGigabitEthernet1/0/1
 description uplink
 switchport mode trunk
 macsec network-link
 mls qos trust dscp
 ip dhcp snooping trust
 queue-set 2
!
interface Vlan1
 no ip address
 shutdown
!
interface Vlan30
 ip address 10.70.30.1 255.255.255.0
 ip helper-address 10.1.0.67
!
router eigrp 70
 network 10.70.0.0 0.0.255.255
 passive-interface default
 no passive-interface GigabitEthernet1/0/3
!
ip forward-protocol nd
ip http server
ip http secure-server
ip ssh version 2
!
ip access-list extended SIGNALS
 permit tcp any any range 5060 5061
ip radius source-interface Vlan30
!
radius server ise-1
 address ipv4 10.1.0.12 auth-port 1812 acct-port 1813
!
line con 0
line vty 0 4
 exec-timeout 5 0
 transport input ssh
line vty 5 15
 transport input none
!
monitor session 1 source interface Gi1/0/1
ntp server 10.1.0.123
mac address-table notification change
end
"""


def change_by_others(text: str, *changes: tuple[str, str]) -> str:
    """Return the configuration after others have replaced lines, each of which must exist."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text
