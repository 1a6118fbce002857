"""The feature `ip_sla` of IOS-XE, by Genie's own parsers."""

from __future__ import annotations

from qoslab.genie.ops.ip_sla.ios.ip_sla import IpSla as IosIpSla


class IpSla(IosIpSla):
    """`info`: `operation` by number; of each `type`, the `latest` group, and the `aggregated` ones."""
