"""Linux routers of an inventory: their settings, the preview of their commands, and the findings about their kernel."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from preflight_facts import preflight_facts

from qoslab.errors import ExperimentError, UserError
from qoslab.exchange.inventory_template import inventory_text as inventory_template
from qoslab.lab_kinds import LABS
from qoslab.plan import Options, make_plan
from qoslab.run.devices.ansible_inventory import parse_lab
from qoslab.run.real.preflight.facts import KernelFacts
from qoslab.run.real.preflight.linux_routers import check_linux_routers
from qoslab.run.workers.external.command_preview import sent_commands
from qoslab.schema import load_sweep
from qoslab.schema.inventory import inventory_obstacles
from qoslab.tc.commands.kernel_commands import replace_interfaces

KERNEL = Path(__file__).parents[2] / "experiments/ios-and-kernel.yml"
HOSTS = {name: {} for name in ("client1", "client2", "server1", "server2")}


def inventory_listing(linux: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the output of `ansible-inventory --list` for these Linux routers."""
    reached = {name: {"ansible_host": f"{name}.example", **given} for name, given in (HOSTS | linux).items()}
    return {"host": {"hosts": list(HOSTS)}, "linux_router": {"hosts": list(linux)}, "_meta": {"hostvars": reached}}


def test_linux_router_is_reached_like_a_host() -> None:
    given = {"ansible_become": True, "ansible_port": 2222, "qoslab_interfaces": {"eth1": "ppp0"}}
    lab = parse_lab(inventory_listing({"linux": given}), Path("rack.yml"))
    access = lab.linux_routers["linux"]
    assert (access.host, access.port, access.become) == ("linux.example", 2222, ("sudo", "-n"))
    assert "linux" not in lab.routers and "linux" not in lab.hosts
    settings = lab.nodes.linux_routers["linux"]
    assert (settings.device("eth1"), settings.device("eth0")) == ("ppp0", "eth0")
    experiment = load_sweep(KERNEL, {}).experiment
    # The engine router of the same experiment is in no group.
    (missing,) = inventory_obstacles(experiment, lab.nodes, Path("rack.yml"))
    assert "found no ios in the group engine_router" in missing.message
    missing_too = inventory_obstacles(experiment, replace(lab.nodes, linux_routers={}), Path("rack.yml"))[-1]
    assert "found no linux in the group linux_router" in missing_too.message


@pytest.mark.parametrize("variable", ["qoslab_isolate", "qoslab_rollback", "qoslab_show_every"])
def test_settings_of_hosts_and_ios_routers_are_refused_on_a_linux_router(variable: str) -> None:
    expected = f"found {variable} on a Linux router, expected one of qoslab_known_hosts, qoslab_interfaces"
    with pytest.raises(UserError, match=expected):
        parse_lab(inventory_listing({"linux": {variable: "none"}}), Path("rack.yml"))


def test_inventory_to_fill_in_has_a_group_of_linux_routers() -> None:
    text = inventory_template(load_sweep(KERNEL, {}).experiment.topology, "kernel")
    group = text.partition("    linux_router:\n")[2]
    assert "ansible_become: true" in group and "        linux:\n" in group


def test_engine_is_refused_and_a_linux_router_is_not() -> None:
    kind = next(each for each in LABS.values() if each.has_place)
    with pytest.raises(ExperimentError) as refused:
        load_sweep(KERNEL, {}, kind.check)
    assert [each.message for each in refused.value.findings] == [
        "found the platform engine of ios, expected ios, tc or host"
    ]


def test_preview_has_the_differences_under_the_names_of_devices(tmp_path: Path) -> None:
    (tmp_path / "gw.tc.j2").write_text(
        "tc qdisc add dev eth1 root handle 1: htb default 1\n"
        "tc class add dev eth1 parent 1: classid 1:1 htb rate {{ rate }}\n"
    )
    file = tmp_path / "kernel.yml"
    shutil.copytree(KERNEL.parent / "templates", tmp_path / "templates")
    file.write_text(KERNEL.read_text())
    template = "{{template: gw.tc.j2, variables: {{rate: {}}}}}"
    rates = {"arms.1.configure.linux": "2mbit", "arms.3.configure.linux": "1mbit"}
    changes = {place: template.format(rate) for place, rate in rates.items()}
    plan = make_plan(load_sweep(file, changes), Options(arms=("kernel", "kernel-alone")))
    lab = parse_lab(inventory_listing({"linux": {"qoslab_interfaces": {"eth1": "ppp0"}}}), Path("rack.yml"))
    lines = list(sent_commands(plan, lab.nodes.linux_routers))
    assert lines == [
        "",
        "commands of tc on linux, in order, tried in a separate network namespace first",
        "  cell 1: kernel/1",
        "    qdisc add dev ppp0 root handle 1: htb default 1",
        "    class add dev ppp0 parent 1: classid 1:1 htb rate 2mbit",
        "  cell 2: kernel-alone/1",
        "    class change dev ppp0 parent 1: classid 1:1 htb rate 1mbit",
        "  at the end, also if the connection ends",
        "    qdisc del, for existing qdiscs only",
    ]


def test_devices_of_filters_and_actions_are_also_renamed() -> None:
    command = "filter add dev {1} parent 1: flower indev {0} action mirred egress redirect dev {1}"
    named = replace_interfaces(command.format("eth0", "eth1").split(), {"eth0": "lan", "eth1": "ppp0"})
    assert " ".join(named) == command.format("lan", "ppp0")


def test_obstacles_of_a_kernel_are_findings() -> None:
    name, host = next(iter(preflight_facts().hosts.items()))

    def finding_texts(kernel: KernelFacts | None, *, root: bool = True) -> list[str]:
        changed = replace(host, kernel=kernel, root=root)
        return [str(each) for each in check_linux_routers(replace(preflight_facts(), hosts={name: changed}))]

    assert finding_texts(None, root=False) == finding_texts(KernelFacts("6.1")) == []
    assert finding_texts(KernelFacts(), root=False) == [
        f"{name}: found a login without root privileges, expected them for changes to qdiscs; "
        "set ansible_become: true, or log in as root"
    ]
    assert finding_texts(
        KernelFacts("6.1", forwards=False, obstacles=(("eth1 has the qdisc htb 1:", "Remove it."),))
    ) == [
        f"{name}: found net.ipv4.ip_forward 0, expected 1 on a router of the experiment; "
        "sysctl -w net.ipv4.ip_forward=1",
        f"{name}: eth1 has the qdisc htb 1:; remove it",
    ]
