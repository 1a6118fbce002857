"""Router with a small configuration, for tests of later lines."""

from __future__ import annotations

from ios_strategies import hardware
from qoslab.ios.model.device import Device, Generation
from qoslab.ios.parse import apply_config, parse_config
from qoslab.ios.running_config import render

CARET = "% Invalid input detected at '^' marker."

BASE = """\
class-map match-any Voice
 match dscp ef
class-map Data
 match class-map Voice
policy-map Child
 class Voice
  set precedence 5
policy-map Edge
 class Data
  police cir 100000
 class class-default
  shape average 1000000
  service-policy Child
policy-map Inner
 class class-default
  shape average 2000000
  service-policy Edge
policy-map Queue
 class Data
  bandwidth 64
interface FastEthernet0/0
 ip address 10.0.0.1 255.255.255.0
 service-policy output Edge
ip access-list extended List
 10 permit ip any any
"""


def configured_device(text: str, generation: Generation = "classic", base: str = BASE) -> Device:
    device = parse_config(base, hardware(generation))
    apply_config(device, text)
    return device


def running_lines(device: Device) -> list[str]:
    return [line.strip() for line in render(device).splitlines()]
