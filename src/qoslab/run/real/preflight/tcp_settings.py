"""Check that unchanged hosts have the TCP settings of all cells."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding


def check_tcp_settings(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check the active settings: attributes of the route to the other hosts, or the kernel's values."""
    for name, host in facts.hosts.items():
        for what, there, wanted in host.differences:
            if not wanted:
                yield PreflightFinding(
                    name, f"found no {what}, expected one", "add a route there, through the experiment's router"
                )
                continue
            hint = f"{_settings_remedy(what, wanted)}, or set qoslab_isolate to `in place` or `namespace`"
            yield PreflightFinding(name, f"found {what} {there or 'unknown to its kernel'}, expected {wanted}", hint)


def _settings_remedy(what: str, wanted: str) -> str:
    setting, _, address = what.partition(" to ")
    if not address:
        return f'sysctl -w {setting}="{wanted}"'
    unit = "ms" if setting == "rto_min" else ""
    return f"give its route there `{setting} {wanted}{unit}` (ip route change)"
