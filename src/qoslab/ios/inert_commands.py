"""Inert commands: accepted and printed, without effect on the modelled queueing and forwarding of packets.

Sources: the command references of IOS 12.4 and 15.x, running configurations of routers and switches.
"""

from __future__ import annotations

from qoslab.ios.command_families import parse_families

FAMILIES = parse_families(
    """
[config, services]
router services
    ~service pad
    ~service dhcp
    ~service prompt config
    service (nagle|tcp-keepalives-in|tcp-keepalives-out|tcp-small-servers|udp-small-servers|finger|config)
    service (password-encryption|sequence-numbers|compress-config)
    service (internal|linenumber|call-home|hide-telnet-addresses)
    service (unsupported-transceiver|decimal-tty|disable-ip-fast-frag|slave-log|pt-vty-logging|old-slip-prompts)
    service (counters|exec-wait|alignment|telnet-zeroidle|exec-callback) [<rest:line>]
    password encryption aes
    prompt <rest:line>
    default-value <each:line>
    regexp optimize
    resource policy
    scripting tcl <each:line>
    utilization interval <rest:line>
[config router, services]
the chassis and its ports
    memory statistics history table <rest:line>
    partition <each:line>
    upgrade fpd <each:line>
    modemcap <each:line>
    errdisable <each:line>
    udld <rest:line>
    lacp system-priority <rest:line>
    mls (flow|cef|nde|aging|netflow|sampling|rate-limit|ip) <each:line>
access-control and name tables
    ip (port-map|sdf|kerberos|device|bgp-community) <each:line>
    ip reflexive-list timeout <rest:line>
    ipv6 (general-prefix|local) <each:line>
    >ipv6 dhcp pool <key:word>
    >ipv6 nd raguard policy <key:word>
    >(identity|eap) profile <key:word>
    >template <key:word>
    >ip explicit-path <each:line>
[config limit-microseconds, platform]
IOS-XE system settings
    platform (qfp|punt-keepalive|hardware|console|shell|ipsec|trace) [<rest:line>]
    memory free low-watermark processor ^<rest:line>
    diagnostic bootup level ^<level:word>
    netconf-yang [<rest:line>]
    restconf
    iox
    >app-hosting appid <key:word>
    cts (logging|authorization|credentials|sxp) [<each:line>]
    route-tag notation <rest:line>
    avc sd-service
    aqm-register-fnf
    epm logging
    software auto-upgrade <rest:line>
    >telemetry ietf subscription <number:word>
match and marking counters are always on
    platform qos (match-statistics|marker-statistics) [<rest:line>]
[config, boot]
router boot settings
    boot-start-marker
    boot-end-marker
    boot <each:line>
    warm-reboot [<rest:line>]
    license <each:line>
    hw-module <each:line>
    card <each:line>
    memory-size iomem <rest:line>
    config-register <rest:line>
[config, messages]
system messages
    ~logging on
    logging <key:address> [<rest:line>]
    logging host <each:line>
    logging (trap|facility|source-interface|origin-id|monitor|history|rate-limit|queue-limit) [<rest:line>]
    logging (count|userinfo|snmp-authfail|exception|persistent|esm|cns-events|alarm|dmvpn) [<rest:line>]
    =logging message-counter <key:word>
    logging event <each:line>
    logging discriminator <key:word> [<rest:line>]
[config, access]
login permissions
    =aaa new-model
    aaa (authentication|authorization|accounting) <key-one:word> [<key-two:word> [<rest:line>]]
    aaa (local|nas|attribute|route|traceback|max-sessions) <each:line>
    aaa (cache|intercept|user|memory|dnis|configuration) <each:line>
    aaa session-id common
    >aaa group server <kind:word> <key:word>
    >aaa server radius dynamic-author
    >radius server <key:word>
    >tacacs server <key:word>
    radius-server <each:line>
    tacacs-server <each:line>
    ip (radius|tacacs) source-interface <rest:line>
    privilege <each:line>
    >parser view <key:word> [<rest:line>]
    parser (config|command|cache) <each:line>
    login (block-for|delay|quiet-mode|on-failure|on-success) [<rest:line>]
    security (passwords|authentication) <each:line>
    enable password <rest:line>
    enable secret ^ (4|8|9) <rest:line>
    username <key:word> ^ [privilege <level:0-15>] (password <rest:line>|secret (4|8|9) <hash:line>)
    username <key:word> ^ [privilege <level:0-15>] (nopassword|autocommand <rest:line>|view <rest:line>)
the router's clock
    clock timezone <rest:line>
    clock summer-time <rest:line>
    clock (calendar-valid|initialize|save) [<rest:line>]
    network-clock-participate <each:line>
    network-clock-select <each:line>
[config, resolver]
host functions of the router: names, files and connections
    ~ip source-route
    ~ip gratuitous-arps
    ~ip bootp server
    ~ip domain round-robin
    ip bootp <each:line>
    ip finger [<rest:line>]
    ip identd
    ip name-server <each:line>
    ip host <key:word> <rest:line>
    ip domain (list|timeout|retry|tracking) <each:line>
    ip domain-list <each:line>
    ip dhcp (excluded-address|ping|relay|conflict|use) [<each:line>]
    ip dhcp (binding|smart-relay|snooping|bootp|database|limit) [<each:line>]
    ~ip dhcp conflict logging
    ~ip dhcp snooping information option
    ~ip dhcp snooping verify mac-address
    >ip dhcp pool <key:word>
    >ip dhcp class <key:word>
    ip local pool <key:word> <rest:line>
    ip ssh <key:word> [<rest:line>]
    ip scp server enable
    ip (ftp|tftp|rcmd|telnet) <each:line>
    ip tcp (selective-ack|path-mtu-discovery|synwait-time|window-size|mss|timestamp|ecn|finwait-time) [<rest:line>]
    ip tcp (chunk-size|queuemax|intercept) <each:line>
    ip icmp (rate-limit|redirect) [<rest:line>]
    ip options <rest:line>
    ip arp (gratuitous|queue|entry|incomplete) <each:line>
    ip address-pool <rest:line>
    ip auth-proxy <each:line>
    ip admission <each:line>
    ip ips <each:line>
    ip cef (accounting|load-sharing|traffic-statistics|table|linecard|optimize|distributed) [<each:line>]
    ip routing protocol purge interface
    ip default-gateway <rest:line>
    ip subscriber-management <rest:line>
    ip http-client <each:line>
the chassis and its management
    ~mmi auto-configure
    ~mmi pvc
    mmi (polling-interval|snmp-timeout) <rest:line>
    =dot11 syslog
    file (prompt|verify) <rest:line>
    exception <each:line>
    scheduler <key:word> [<rest:line>]
    process <each:line>
    process-max-time <rest:line>
    buffers <each:line>
    subscriber templating
    redundancy-reload <rest:line>
    >redundancy
    >archive
    >call-home
    cns <each:line>
    =vstack
    tftp-server <each:line>
    alias (exec|configure|interface) <key:word> <rest:line>
    menu <each:line>
    >kron (policy-list|occurrence) <key:word> [<rest:line>]
    >event manager applet <key:word> [<rest:line>]
    event manager (environment|session|directory|policy|history|detector|scheduler) <each:line>
    >track <key:1-1000> [<rest:line>]
    chat-script <key:word> <rest:line>
    dialer-list <each:line>
    multilink bundle-name <rest:line>
    =vpdn enable
    >vpdn-group <key:word>
    ip access-list (logging|log-update) <each:line>
    >key chain <key:word>
    >time-range <key:word>
[config, voice]
telephony
    >voice-card <key:word>
    >voice (service|class|register) <key:word> [<rest:line>]
    >voice (translation-rule|translation-profile|hunt-group|source-group) <key:word> [<rest:line>]
    >dial-peer voice <key:word> (voip|pots|vofr|voatm|mmoip)
    dial-peer (cor|search|outbound|terminator|data) <each:line>
    >voice-port <key:word>
    >telephony-service [<rest:line>]
    >ephone <key:word>
    >ephone-dn <key:word> [<rest:line>]
    >call-manager-fallback
    >sip-ua
    >gateway
    >gatekeeper
    >dspfarm profile <key:word> [<rest:line>]
    mgcp [<each:line>]
    ccm-manager <each:line>
    sccp <each:line>
    isdn switch-type <rest:line>
    call (admission|threshold|treatment) <each:line>
certificates and keys
    >crypto pki trustpoint <key:word>
    >crypto pki certificate chain <key:word>
    >crypto pki certificate map <key:word> [<rest:line>]
    >crypto pki profile enrollment <key:word>
    >crypto pki server <key:word>
    >crypto ca trustpoint <key:word>
    >crypto ca certificate chain <key:word>
    crypto pki (token|import|export|enroll) <each:line>
    >crypto key pubkey-chain <key:word>
    crypto key (generate|zeroize|import|export|encrypt) <each:line>
neighbour discovery and loop detection: no node responds
    ~cdp run
    cdp (timer|holdtime|source-interface|log|tlv|filter-tlv) [<rest:line>]
    ~cdp advertise-v2
    lldp run
    lldp (timer|holdtime|reinit|tlv-select) [<rest:line>]
    spanning-tree <each:line>
    ~spanning-tree optimize bpdu transmission
[config switch, boot]
the switch's chassis and its management
    switch <key:1-9> <rest:line>
    system mtu [routing] <size:1500-1500>
    sdm prefer <rest:line>
    stack-mac <rest:line>
    vtp <each:line>
    errdisable <each:line>
    udld <rest:line>
    vlan internal allocation policy <rest:line>
    =setup express
    port-channel load-balance <rest:line>
    mac address-table (aging-time|notification|learning) <each:line>
    authentication mac-move <rest:line>
    network-policy profile <rest:line>
[config, http]
web server and flow export
    =ip http server
    =ip http secure-server
    ip http <key:word> [<rest:line>]
    =ip forward-protocol nd
    ip forward-protocol (udp|turbo-flood|sdns|spanning-tree|any-local-broadcast) [<each:line>]
    ip flow-export <key:word> [<rest:line>]
    ip flow-cache <each:line>
    >ip flow-aggregation cache <key:word>
    ip accounting-threshold <rest:line>
    >ip flow-top-talkers
    >flow (exporter|monitor|record) <key:word>
    >flow-sampler-map <key:word>
    >sampler <key:word>
[config, snmp]
network management
    snmp-server community <key:word> [<rest:line>]
    snmp-server (location|contact|chassis-id) <rest:line>
    snmp-server (packetsize|queue-length|trap-source|source-interface) <rest:line>
    snmp-server <key:engine-id> <rest:line>
    snmp-server enable traps [<each:line>]
    snmp-server (host|group|user|view|file-transfer|queue-limit|tftp-server-list|trap|trap-timeout) <each:line>
    snmp-server (ifindex|ip|inform|manager|cache|context) [<each:line>]
    snmp-server (system-shutdown|trap-authentication)
    snmp ifmib <each:line>
    snmp mib <each:line>
    rmon <each:line>
    netconf <each:line>
    >wsma (agent|profile) <key:word> [<rest:line>]
[config, control-plane]
control plane: packets for the router are not policed
    >control-plane [<rest:line>]
[config, clock]
the router's clock
    ntp (server|peer) <key:word> [<rest:line>]
    ntp authentication-key <key:word> <rest:line>
    ntp trusted-key <key:word>
    ntp access-group <key:word> <rest:line>
    ntp (source|clock-period|master|max-associations) [<rest:line>]
    ntp (maxdistance|authenticate|update-calendar|logging|passive) [<rest:line>]
    sntp server <key:word> [<rest:line>]
other terminal lines
    >line (tty <key:0-2000>|<key:0-2000>) [<rest:line>]
[policy-class router]
class counters and logs
    account [drop]
    log
    estimate bandwidth [<rest:line>]
    netflow-sampler <rest:line>
a router passes marks unchanged by default
    trust (dscp|cos|precedence)
[config router, voice]
flow monitoring
    >policy-map type performance-monitor <key:word>
    >class-map type performance-monitor [<how:word>] <key:word>
[interface router]
flow monitoring
    service-policy type performance-monitor <rest:line>
    performance monitor <rest:line>
line startup: the rate comes from the link
    ~atm ilmi-keepalive
    ~atm auto-configuration
    ~atm address-registration
    ~atm ilmi-enable
    dsl <each:line>
    serial restart-delay <rest:line>
port negotiation
    full-duplex
    half-duplex
[interface queue-limit-units]
since 12.4(20)T classes may reserve all of the bandwidth
    max-reserved-bandwidth [<rest:line>]
[interface limit-microseconds]
since 12.4(20)T classes may reserve all of the bandwidth
    max-reserved-bandwidth [<rest:line>]
[line]
terminal settings
    ~exec
    ~activation-character
    ~vacant-message
    ~motd-banner
    ~exec-banner
    access-class <key:word> [<rest:line>]
    stopbits <rest:line>
    databits <rest:line>
    parity <rest:line>
    speed <rest:line>
    txspeed <rest:line>
    rxspeed <rest:line>
    flowcontrol <rest:line>
    length <rest:line>
    width <rest:line>
    history size <rest:line>
    session-timeout <rest:line>
    session-limit <rest:line>
    absolute-timeout <rest:line>
    escape-character <rest:line>
    terminal-type <rest:line>
    location <rest:line>
    notify
    monitor
    lockable
    autoselect [<rest:line>]
    =modem enable
    modem <rest:line>
    rotary <rest:line>
    autocommand <rest:line>
    transport (preferred|output) <rest:line>
    authorization <key:word> <rest:line>
    accounting <key:word> <rest:line>
    login authentication <rest:line>
[interface]
ICMP and ARP messages, and switching paths with the same result
    ~ip redirects
    ~ip unreachables
    ~ip proxy-arp
    ~ip mroute-cache
    ip route-cache [<key:word> [<rest:line>]]
    ip mask-reply
    ip directed-broadcast [<rest:line>]
    ip helper-address <each:line>
    ipv6 nd <each:line>
    ip load-sharing per-destination
    ip (broadcast-address|irdp|sticky-arp|source-track|dhcp) [<each:line>]
    ip virtual-reassembly [<rest:line>]
    ip accounting <each:line>
    arp timeout <rest:line>
interface counters and reports
    ip flow (ingress|egress)
    ip flow monitor <each:line>
    flow monitor <each:line>
    (ipv6|datalink) flow monitor <each:line>
    metadata flow [<each:line>]
    ip nbar protocol-discovery [<rest:line>]
    =snmp trap link-status
    =logging event <key:word> [<rest:line>]
    delay <rest:line>
    carrier-delay <rest:line>
    macro (description|name) <rest:line>
    bandwidth receive <rest:line>
    rmon (collection|promiscuous|native) <each:line>
    history (bps|pps) [<rest:line>]
    link debounce [<rest:line>]
    h323-gateway voip <each:line>
    snmp ifindex <each:line>
neighbour discovery and loop detection: no node responds
    ~cdp enable
    cdp (log|tlv) <each:line>
    =lldp transmit
    =lldp receive
    ~mop enabled
    ~mop sysid
    spanning-tree (portfast|bpduguard|bpdufilter|guard|link-type|cost|port-priority|vlan|mst) [<rest:line>]
    udld <rest:line>
port negotiation
    media-type <rest:line>
    =negotiation auto
    =mdix auto
    power inline <rest:line>
    ppp (authentication|chap|pap|ipcp|lcp|timeout|max-configure|max-failure|max-terminate|accounting) <each:line>
    ntp (broadcast|multicast|disable) [<rest:line>]
[interface switch]
port negotiation
    switchport nonegotiate
    ip dhcp snooping <each:line>
"""
)

UNDECIDED_BELOW = (("control-plane", "service-policy", "packets for the router itself are not policed"),)
"""Undecided lines below an accepted line: first word of the block, first word of the line, and reason."""
