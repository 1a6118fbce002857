"""The feature `qos` of IOS-XE (`os: iosxe` in a testbed)."""

from genie import abstract

abstract.declare_token(os="iosxe")
