"""Preflight checks, before the first packet: whether the nodes of an inventory match the experiment.

A check is a function from `PreflightFacts` to its findings, and a line in `PREFLIGHT_CHECKS`. It sends no requests: any
additional data for it becomes a field of `PreflightFacts`, which `gather` fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qoslab.errors import UserError
from qoslab.run.real.preflight.addresses import check_addresses
from qoslab.run.real.preflight.cabling import check_cabling
from qoslab.run.real.preflight.duplicate_devices import check_duplicates
from qoslab.run.real.preflight.existing_configuration import check_existing_configuration
from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding
from qoslab.run.real.preflight.host_needs import check_clocks, check_disk, check_programs, check_rights
from qoslab.run.real.preflight.idle_links import check_idle_links
from qoslab.run.real.preflight.link_state import check_damaged_frames, check_ports
from qoslab.run.real.preflight.linux_routers import check_linux_routers
from qoslab.run.real.preflight.management import check_management
from qoslab.run.real.preflight.rollback_timer import rollback
from qoslab.run.real.preflight.router_models import check_devices, check_interfaces
from qoslab.run.real.preflight.tcp_settings import check_tcp_settings

PreflightCheck = Callable[[PreflightFacts], Iterable[PreflightFinding]]

PREFLIGHT_CHECKS: tuple[PreflightCheck, ...] = (
    check_duplicates,
    check_rights,
    check_linux_routers,
    check_devices,
    check_interfaces,
    check_addresses,
    check_existing_configuration,
    rollback,
    check_ports,
    check_cabling,
    check_management,
    check_idle_links,
    check_damaged_frames,
    check_tcp_settings,
    check_programs,
    check_disk,
    check_clocks,
)


def run_checks(facts: PreflightFacts) -> list[PreflightFinding]:
    """Return the findings of all checks: reasons against a run, and notes."""
    return [found for each in PREFLIGHT_CHECKS for found in each(facts)]


def refusal_error(found: Iterable[PreflightFinding]) -> UserError | None:
    """Return the error that refuses a run; None without such a finding."""
    errors = [str(each) for each in found if each.is_error]
    return UserError("\n".join(errors)) if errors else None
