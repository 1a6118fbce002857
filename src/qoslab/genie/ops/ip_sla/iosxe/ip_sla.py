"""The feature `ip_sla` of IOS-XE, by Genie's own parsers."""

from __future__ import annotations

from qoslab.genie.ops.ip_sla.ios.ip_sla import IpSla as IosIpSla


class IpSla(IosIpSla):
    """Operations in `info`: `operation` by number, each with `type`, the `latest` group, and the `aggregated`
    groups.
    """
