"""The feature `ip_sla` of IOS (`os: ios` in a testbed)."""

from genie import abstract

abstract.declare_token(os="ios")
