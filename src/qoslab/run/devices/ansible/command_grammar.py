"""Imported by Ansible: its workers inherit the grammar of the commands that configurations have most often.

The grammar of a mode is built when the first line is read in it, which takes most of the time of a comparison.
"""

from __future__ import annotations

from qoslab.ios.device_config.config_equivalence import configuration_differences

PROMPT_ANSWERS = """\
class-map match-any Voice
 match ip dscp ef
policy-map Policy
 class Voice
  police cir 64000
 class class-default
  shape average 64000
interface FastEthernet0/0
 service-policy output Policy
access-list 101 permit ip any any
"""
PRECEDING_COMMANDS = """\
version 12.4
hostname R1
enable secret 5 $1$salt$text
ip cef
username lab privilege 1 secret 5 $1$salt$text
interface FastEthernet0/0
 ip address 192.0.2.1 255.255.255.0
 duplex auto
 speed auto
ip route 0.0.0.0 0.0.0.0 192.0.2.2
line con 0
line aux 0
line vty 0 4
 login
end
"""

configuration_differences(PROMPT_ANSWERS, PRECEDING_COMMANDS, before=PRECEDING_COMMANDS)
configuration_differences(
    PROMPT_ANSWERS, PRECEDING_COMMANDS.removesuffix("end\n") + PROMPT_ANSWERS, before=PRECEDING_COMMANDS
)
