"""The feature `qos` of IOS (`os: ios` in a testbed)."""

from genie import abstract

abstract.declare_token(os="ios")
