"""Preflight checks on facts of labs that no virtual lab has."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from preflight_facts import (
    ARCHIVED,
    MACS,
    POLICING,
    QUICK,
    RUNNING,
    SAVED,
    SMALL,
    UP,
    nic_facts,
    preflight_facts,
    router_port,
)

from qoslab.ios.model.generations import release_generation
from qoslab.model.experiment import Experiment
from qoslab.model.inventory import HostSettings, Isolation, RollbackMethod, RouterSettings
from qoslab.model.units import Duration
from qoslab.run.real.access.rollback_methods import RollbackState
from qoslab.run.real.preflight import refusal_error, run_checks
from qoslab.run.real.preflight.cabling import has_unchecked_cables, link_proofs
from qoslab.run.real.preflight.check_results import changed_devices, device_identities
from qoslab.run.real.preflight.duplicate_devices import check_duplicates
from qoslab.run.real.preflight.facts import CableAnswers, RoundTrips
from qoslab.run.real.preflight.locks import check_locks


def test_correct_lab_has_no_findings() -> None:
    assert run_checks(preflight_facts()) == []
    assert link_proofs(preflight_facts()) == {"lan": "proven", "wan": "proven"}


@pytest.mark.parametrize(
    ("release", "generation"),
    [
        ("12.4(15)T14", "classic"),
        ("12.4(20)T", "hqf"),
        ("12.4(25)", "classic"),
        ("12.0(5)T", "classic"),
        ("12.0(4)T", None),
        ("12.0(28)", None),
        ("11.2(18)", None),
        ("12.2(55)SE3", "classic"),
        ("15.0(1)M4", "hqf"),
        ("15.1(4)M12a", "hqf"),
        ("17.03.04", "ios-xe"),
        ("nothing", None),
    ],
)
def test_generation_follows_from_the_release(release: str, generation: str | None) -> None:
    assert release_generation(release) == generation


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no IOS": (
        {"ios": False, "software": "JUNOS 12.1X47", "ports": {}},
        ['R1: found "JUNOS 12.1X47" as its version, expected Cisco IOS; check whether the inventory has the address '],
    ),
    "too old": (
        {"release": "11.2(18)"},
        ["R1: found release 11.2(18), expected one with class-maps: 12.0(5)T or later; "],
    ),
    "interface": (
        {"ports": {"FastEthernet0/0": UP["FastEthernet0/0"], "Serial0/0": router_port("")}},
        ["R1: found no interface FastEthernet0/1 for the link wan, expected one of FastEthernet0/0, Serial0/0; "],
    ),
    "interfaces that nothing reads": (
        {"ports": {}, "unread": "the parser recognised nothing in it"},
        [
            "R1: found no parser for its output of `show interfaces` (the parser recognised nothing in it), expected "
            "a list of its interfaces; enter `show interfaces` there"
        ],
    ),
    "slow port": (
        {"ports": {**UP, "FastEthernet0/1": router_port(MACS["Fa1"], "192.168.20.1/24", mbps=10.0)}},
        ["R1: found FastEthernet0/1 at 10 Mb/s, expected 100 Mb/s for the link wan; the port is too slow: "],
    ),
    "a model that nobody knows": (
        {"model": "7301"},
        [
            "R1: found model 7301, expected 3725; check that it is the right device, or give qoslab_model: 7301 for it "
            "in the inventory, if it represents a 3725"
        ],
    ),
    "rights of a router": (
        {"refused": "% Invalid input detected"},
        ['R1: found "% Invalid input detected" for its configuration, expected its lines; log in'],
    ),
    "rights of a host": (
        {"client": {"root": False}},
        ['client: found a login without root privileges, expected them for qoslab_isolate: "in place"; '],
    ),
    "rights of a host to capture": (
        {"way": "as it is", "server": {"no_capture": "dumpcap: socket: Operation not permitted", "root": False}},
        [
            'server: found no permission to capture ("dumpcap: socket: Operation not permitted"), expected it for '
            "the experiment's captures; add the user"
        ],
    ),
    "TCP of a host that stays as it is": (
        {
            "way": "as it is",
            "client": {
                "differences": (
                    ("net.ipv4.tcp_no_metrics_save", "0", "1"),
                    ("rto_min to 192.168.20.2", "200", "300"),
                    ("route to 192.168.30.2", "", ""),
                )
            },
        },
        [
            'client: found net.ipv4.tcp_no_metrics_save 0, expected 1; sysctl -w net.ipv4.tcp_no_metrics_save="1", '
            "or set qoslab_isolate to `in place` or `namespace`",
            "client: found rto_min to 192.168.20.2 200, expected 300; give its route there `rto_min 300ms` (ip route "
            "change), or set",
            "client: found no route to 192.168.30.2, expected one; add a route there, through the experiment's router",
        ],
    ),
    "program": (
        {"server": {"missing": ("iperf3",)}},
        ["server: found no program iperf3 in PATH, expected it to be installed; install"],
    ),
    "a program of ours": (
        {"server": {"unfit": {"flood": "flood: /lib/libc.so.6: version `GLIBC_2.34' not found (required by flood)"}}},
        [
            "server: found that flood does not run there (\"flood: /lib/libc.so.6: version `GLIBC_2.34' not found "
            '(required by flood)"); the experiment needs it; use a host like this machine, or name a flood in '
            "QOSLAB_FLOOD that needs no library (cargo build"
        ],
    ),
    "congestion control": (
        {"server": {"congestion": frozenset({"cubic"})}},
        ["server: found no TCP congestion control reno, expected one of cubic; modprobe tcp_reno"],
    ),
    "disk": (
        {"server": {"free": 10**7}},
        ["server: found 10 MB free for captures, expected at least 67 MB; free disk space"],
    ),
    "reached by a test card": (
        {"client": {"management": "eth0"}},
        ["client: found the path to it through eth0, expected an interface outside the test networks; "],
    ),
    "test network elsewhere": (
        {
            "client": {
                "cards": {
                    "eth0": nic_facts(MACS["client"]),
                    "mgmt": nic_facts("02:00:00:00:01:00", addresses=("192.168.20.9/24",)),
                }
            }
        },
        ["client: found 192.168.20.9/24 on mgmt, expected test networks only on eth0; remove that address; "],
    ),
    "two with an address": (
        {"client": {"cables": {"eth0": CableAnswers({"192.168.10.1": (MACS["Fa0"], MACS["server"])}, QUICK)}}},
        ["link lan: found two devices answering for 192.168.10.1 at eth0 of client (FastEthernet0/0 of R1 and "],
    ),
    "CDP": (
        {"neighbours": (("FastEthernet0/0", "R1", "FastEthernet0/1"),)},
        ["link lan: found FastEthernet0/1 of R1 at FastEthernet0/0 of R1according to that device, expected "],
    ),
    "delay": (
        {"client": {"cables": {"eth0": CableAnswers({"192.168.10.1": (MACS["Fa0"],)}, RoundTrips(20, (40.2,) * 20))}}},
        ["link lan: found a round trip of 40.2 ms at rest, expected at most 8 ms; "],
    ),
    "loss": (
        {"client": {"cables": {"eth0": CableAnswers({"192.168.10.1": (MACS["Fa0"],)}, RoundTrips(20, (0.3,) * 17))}}},
        ["link lan: found 3 of 20 requests without an answer at rest, expected all answered; "],
    ),
    "names that are taken": (
        {"running": "policy-map Police\n class class-default\n  police cir 64000\n!\n" + RUNNING},
        [
            "R1: found that it has its own `policy-map Police`, with different content; the experiment must not "
            "overwrite existing configuration; rename it in the"
        ],
    ),
    "interface with a policy": (
        {
            "running": RUNNING.replace(
                "20.1 255.255.255.0\n", "20.1 255.255.255.0\n service-policy output Own\n"
            ).replace("interface F", "policy-map Own\n class class-default\n  fair-queue\n!\ninterface F", 1)
        },
        [
            "R1: found that `service-policy output Own` is already active under `interface FastEthernet0/1`; the "
            "experiment must not overwrite existing configuration; rename it in the"
        ],
    ),
    "interface that limits and queues": (
        {
            "running": RUNNING.replace(
                "20.1 255.255.255.0\n", "20.1 255.255.255.0\n custom-queue-list 3\n rate-limit input who knows\n"
            )
        },
        [
            f"R1: found `{line}` on FastEthernet0/1, expected no policy or queueing except the experiment's on the "
            "link wan; remove it until"
            for line in ("custom-queue-list 3", "rate-limit input who knows")
        ],
    ),
    "half duplex at the host": (
        {"server": {"cards": {"eth0": nic_facts(MACS["server"], duplex="half", mbps=10)}}},
        ["server: found eth0 half duplex, expected full duplex; ", "server: found eth0 at 10 Mb/s, expected 100 Mb/s"],
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_faults_of_the_lab_are_reported_and_refused(fault: str) -> None:
    changed, expected = WRONG[fault]
    refused = refusal_error(run_checks(preflight_facts(**changed)))
    assert refused is not None
    lines = refused.message.splitlines()
    assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected


def test_nodes_of_another_run_are_reported() -> None:
    found = check_locks({"client": {"eth0": "the run of alice"}, "server": {}}, {"R1": "the run of alice", "R2": ""})
    assert [str(each) for each in found] == [
        "client: found eth0 locked by the run of alice, expected no lock; wait for it to finish",
        "R1: found the run lock of another run, the run of alice, expected none; wait for it to finish; if it "
        "crashed, run `qoslab lab rescue` on the machine that started it, or enter `no alias exec qoslab`",
    ]


CERTIFICATES = """\
crypto pki certificate chain TP-self-signed-2530094529
 certificate self-signed 01
  30820247 308201B0 A0030201 02020101 300D0609 2A864886 F70D0101 04050030
  31312F30 2D060355 0403
  \tquit
crypto pki certificate chain rack
 certificate ca 00A1
  30820247 308201B0
  quit
"""
CERTIFICATE_FILES = """\
crypto pki certificate chain TP-self-signed-2530094529
 certificate self-signed 01 nvram:IOS-Self-Sig#1.cer
crypto pki certificate chain rack
 certificate ca 00A1 nvram:rack#A1CA.cer
"""
NOT_SAVED = "reload: it has unsaved changes that a reload would remove (write memory)"
NO_ARCHIVE = "archive: it has no `archive` with a `path` in its configuration"


@pytest.mark.parametrize(
    ("wanted", "kept", "found"),
    [
        (None, replace(SAVED, startup="startup-config is not present\n"), ""),
        (None, replace(SAVED, flash=SMALL), ""),
        (None, RollbackState(ARCHIVED, "", SMALL), ""),
        (
            None,
            RollbackState(RUNNING, "", SMALL),
            f"{NO_ARCHIVE}; eem: flash has 100 bytes free, but the copy needs {len(RUNNING)}; {NOT_SAVED}",
        ),
        (
            None,
            RollbackState(RUNNING, "", "%Error opening flash:/ (Device not ready)\n"),
            f"{NO_ARCHIVE}; eem: %Error opening flash:/ (Device not ready); {NOT_SAVED}",
        ),
        ("archive", SAVED, NO_ARCHIVE),
        ("archive", RollbackState(ARCHIVED, "", SMALL), ""),
        ("eem", replace(SAVED, flash="what nobody reads"), ""),
        ("reload", RollbackState(RUNNING + "ip sla 1\n", RUNNING, ""), NOT_SAVED),
        (
            "reload",
            RollbackState("Building configuration...\n" + RUNNING, "Using 900 out of 245752 bytes\n" + RUNNING),
            "",
        ),
        ("reload", RollbackState(RUNNING + CERTIFICATES, RUNNING + CERTIFICATE_FILES, ""), ""),
        ("reload", RollbackState(RUNNING + CERTIFICATES, RUNNING, ""), NOT_SAVED),
        (
            "reload",
            RollbackState(RUNNING + CERTIFICATES, RUNNING + CERTIFICATE_FILES.replace("01 ", "02 "), ""),
            NOT_SAVED,
        ),
        ("none", RollbackState(RUNNING, "", SMALL), ""),
    ],
)
def test_router_without_a_rollback_method_is_refused(
    wanted: RollbackMethod | None, kept: RollbackState, found: str
) -> None:
    lines = [
        str(each)
        for each in run_checks(preflight_facts(rollback_state=kept, settings=RouterSettings(rollback=wanted)))
        if each.is_error
    ]
    expected = f"qoslab_rollback: {wanted}" if wanted else "one that works"
    assert lines == [
        f"R1: found no rollback method that works ({each}), expected {expected}; fix that, or run without a rollback "
        f"timer: qoslab_rollback: none"
        for each in (found,)
        if each
    ]


def test_rollback_timer_shorter_than_the_longest_cell_is_refused() -> None:
    changed: dict[str, Any] = {"rollback_state": RollbackState(ARCHIVED, "", SMALL), "longest": Duration.parse("3 h")}
    lines = [
        str(each)
        for each in run_checks(preflight_facts(settings=RouterSettings(rollback="archive"), **changed))
        if each.is_error
    ]
    assert len(lines) == 1 and "(archive: its maximum is 120 min, but the longest cell needs 210 min)" in lines[0]
    # Another one may last.
    changed["rollback_state"] = replace(SAVED, running=ARCHIVED)
    assert not [each for each in run_checks(preflight_facts(**changed)) if each.is_error]


def two_routers(first: dict[str, str], second: dict[str, str], board: str = "FTX0945W0MY") -> list[str]:
    """Return the findings on a second router next to R1; hardware addresses of each by interface."""
    found = preflight_facts()
    routers = {
        name: replace(found.routers["R1"], board=board, ports={each: router_port(mac) for each, mac in macs.items()})
        for name, macs in (("R1", first), ("R2", second))
    }
    return [str(each) for each in check_duplicates(replace(found, routers=routers))]


def test_one_router_under_two_names_is_found_by_its_hardware_addresses() -> None:
    ports = {"FastEthernet0/0": MACS["Fa0"], "Serial0/0": ""}
    reported = "FastEthernet0/0 has 02:00:00:00:00:10 in both"
    advice = "expected a device for each; correct the ansible_host of one of them"
    assert two_routers(ports, ports) == [
        f"R1 and R2: found one router under both names ({reported}, serial number FTX0945W0MY), {advice}"
    ]
    assert two_routers(ports, ports, board="") == [
        f"R1 and R2: found one router under both names ({reported}), {advice}"
    ]
    # Virtual routers of one model print the same serial number; one that took another's address has other addresses
    # too.
    assert two_routers(ports, {"FastEthernet0/0": MACS["Fa1"]}) == []
    assert two_routers(ports, {**ports, "FastEthernet0/1": MACS["Fa1"]}) == []
    assert two_routers({"Serial0/0": ""}, {"Serial0/0": ""}) == []


def test_one_machine_under_two_names_is_found() -> None:
    def cards(first: str, second: str) -> dict[str, Any]:
        both = {"eth0": nic_facts(first), "eth1": nic_facts(second), "lo": nic_facts("00:00:00:00:00:00")}
        return {"cards": both}

    def text(way: Isolation, card_of_server: str, **changed: Any) -> list[str]:
        found = preflight_facts(way=way, **changed)
        named = {"server": HostSettings(isolate=way, interfaces={"eth0": card_of_server})}
        settings = {**found.host_settings, **named}
        return [str(each) for each in check_duplicates(replace(found, host_settings=settings))]

    same = cards(MACS["client"], MACS["server"])
    assert text("namespace", "eth0", client=same, server=same) == [
        "client and server: found one machine under both names, and eth0 for both, expected one interface for each; "
        "give each a different device in qoslab_interfaces, or a different ansible_host"
    ]
    # A PC with a NIC for each host, as namespaces.
    assert text("namespace", "eth1", client=same, server=same) == []
    assert text("in place", "eth1", client=same, server=same) == [
        "client and server: found one machine under both names (eth0 has 02:00:00:00:00:01 in both), expected a device "
        "for each; set `qoslab_isolate: namespace` for both, or use two machines"
    ]
    # Namespaces of one machine that are separate hosts, and machines with a copied image.
    assert text("in place", "eth0", client=same, server=cards(MACS["Fa0"], MACS["Fa1"])) == []
    assert text("in place", "eth0", client=same, server={**same, "machine": "b"}) == []


def test_run_in_progress_elsewhere_is_detected() -> None:
    began = device_identities(preflight_facts(board="FTX1"))
    assert began == {
        "R1": {"model": "3725", "release": "12.4(15)T14", "serial number": "FTX1"},
        "client": {"machine": "a"},
        "server": {"machine": "a"},
    }
    assert (
        changed_devices(began, began)
        == changed_devices({}, began)
        == changed_devices(began, device_identities(preflight_facts(board="")))
        == []
    )
    assert changed_devices(
        began, device_identities(preflight_facts(board="FTX2", release="12.4(15)T5", server={"machine": "b"}))
    ) == [
        "R1: found release 12.4(15)T5, serial number FTX2, expected the device at the start of the run, "
        "release 12.4(15)T14, serial number FTX1",
        "server: found machine b, expected the device at the start of the run, machine a",
    ]


def test_another_model_can_replace_the_model_of_the_experiment() -> None:
    stands = replace(preflight_facts(model="IOSv"), router_settings={"R1": RouterSettings(model="IOSv")})
    assert run_checks(stands) == []
    (found,) = run_checks(replace(preflight_facts(), router_settings={"R1": RouterSettings(model="IOSv")}))
    assert str(found).startswith("R1: found model 3725, expected IOSv; ")


def test_notes_do_not_refuse_a_run() -> None:
    worn = {**UP, "FastEthernet0/0": router_port(MACS["Fa0"], "192.168.10.1/24", errors={"CRC errors": 3})}
    found = run_checks(
        preflight_facts(ports=worn, address="192.168.10.1", server={"clock_ahead_ms": -3700.0, "free": 10**8})
    )
    assert refusal_error(found) is None
    assert [str(each).partition(";")[0] for each in found] == [
        "R1: found its management address 192.168.10.1, in the test network 192.168.10.0/24",
        "R1: found 3 CRC errors on FastEthernet0/0, expected none on the link lan",
        "server: found 100 MB free for captures, expected up to 750 MB",
        "server: found its clock -3.700 s from this machine's, expected at most 1 s",
    ]


def test_route_replaced_by_the_run_is_not_a_finding() -> None:
    for way, prefix, grave in (
        ("in place", "default", False),
        ("in place", "192.168.20.2", True),
        ("as it is", "default", True),
    ):
        changed = {"routes": {"192.168.20.2": ("mgmt", prefix)}}
        refused = refusal_error(run_checks(preflight_facts(way=way, client=changed)))
        assert (refused is not None) is grave, (way, prefix)


def test_confidence_of_a_link_is_reported() -> None:
    silent = {"cables": {"eth0": CableAnswers({}, None, "it takes root")}}
    assert link_proofs(preflight_facts(client=silent)) == {"lan": "not seen", "wan": "proven"}
    arp = {"192.168.10.2": (MACS["client"], "FastEthernet0/0")}
    assert link_proofs(preflight_facts(client=silent, arp=arp))["lan"] == "proven"
    pinged = {"cables": {"eth0": CableAnswers({}, QUICK)}}
    assert link_proofs(preflight_facts(client=pinged))["lan"] == "plausible"
    assert link_proofs(preflight_facts(client=silent, neighbours=(("Fas 0/0", "client", "eth0"),)))["lan"] == "not seen"
    assert link_proofs(preflight_facts(client=silent, neighbours=(("Fa0/0", "client", "eth0"),)))["lan"] == "proven"


def test_learnt_mac_address_locates_a_host() -> None:
    silent = {"cables": {"eth0": CableAnswers({}, None, "")}}
    there = {MACS["client"]: "Fa0/0"}
    assert link_proofs(preflight_facts(client=silent, learnt=there))["lan"] == "proven"
    refused = refusal_error(run_checks(preflight_facts(learnt={MACS["client"]: "Fa0/1"})))
    assert refused is not None
    assert refused.message.startswith(
        "link lan: found eth0 of client at FastEthernet0/1 of R1, expected it at FastEthernet0/0"
    )


def test_nic_that_is_down_is_checked_again() -> None:
    down = {
        "cards": {"eth0": nic_facts(MACS["client"], up=False, carrier=False)},
        "cables": {"eth0": CableAnswers({}, None, "no link")},
    }
    assert has_unchecked_cables(preflight_facts(client=down)) and run_checks(preflight_facts(client=down)) == []
    assert not has_unchecked_cables(preflight_facts())
    stays = refusal_error(run_checks(preflight_facts(way="as it is", client=down)))
    assert stays is not None and "client: found eth0 down, expected it up for the link lan; ip link set eth0 up" in str(
        stays
    )


def emulated_link(**link: Any) -> Experiment:
    """Return the experiment with a wan that delays or loses packets."""
    written = json.loads(POLICING.model_dump_json(by_alias=True))
    written["topology"]["links"][1] |= link
    return Experiment.model_validate_json(json.dumps(written))


@pytest.mark.parametrize(
    ("link", "trips", "expected"),
    [
        ({"delay": "50 ms"}, RoundTrips(20, (100.4,) * 20), ""),
        ({"delay": "50 ms"}, RoundTrips(20, (0.4,) * 20), "found a round trip of 0.4 ms at rest, expected 100 ms"),
        ({"delay": "50 ms"}, RoundTrips(20, (130.0,) * 20), "found a round trip of 130.0 ms at rest, expected 100 ms"),
        ({"delay": "50 ms", "jitter": {"size": "5 ms"}}, RoundTrips(20, (91.0, 100.0, 99.0, 108.0) * 5), ""),
        (
            {"delay": "50 ms", "jitter": {"size": "5 ms"}},
            RoundTrips(40, (100.4, 100.8) * 20),
            "found that half of the round trips at rest are within 0.4 ms, expected jitter of 5 ms (uniform)",
        ),
        (
            {"delay": "50 ms", "jitter": {"size": "2 ms", "distribution": "normal"}},
            RoundTrips(40, (95.0, 130.0) * 20),
            "found that half of the round trips at rest are within 35.0 ms, expected jitter of 2 ms (normal)",
        ),
        (
            {"delay": "50 ms", "jitter": {"size": "5 ms"}},
            RoundTrips(100, (100.0, *(101.0,) * 98, 106.0), summed=True),
            "found that the round trips at rest are within 6.0 ms, expected jitter of 5 ms (uniform)",
        ),
        (
            {"delay": "50 ms", "jitter": {"size": "5 ms"}},
            RoundTrips(100, (92.0, *(101.0,) * 98, 109.0), summed=True),
            "",
        ),
        (
            {"delay": "50 ms", "jitter": {"size": "200 us"}},
            RoundTrips(40, (100.4, 100.8) * 20),
            "found no measurement of its jitter (40 round trips are too few to distinguish 200 us of jitter from none)"
            ", expected one",
        ),
        (
            {"delay": "50 ms", "jitter": {"size": "5 ms", "correlation": "90 %"}},
            RoundTrips(40, (100.4, 100.8) * 20),
            "found no measurement of its jitter (successive delays are correlated, by 90 %), expected one",
        ),
        (
            {},
            RoundTrips(20, (0.3, 12.0) * 10),
            "found that half of the round trips at rest vary by 11.7 ms, expected no jitter",
        ),
        ({}, RoundTrips(20, (*(0.3,) * 17, 40.0, 50.0, 60.0)), ""),
        (
            {"loss": {"model": "random", "probability": "1 %"}},
            RoundTrips(20, (0.3,) * 20, 400, 392),
            "found no measurement of its loss (420 requests are too few to distinguish 2 % round-trip loss from none), "
            "expected one",
        ),
        (
            {"loss": {"model": "random", "probability": "1 %"}},
            RoundTrips(20, (0.3,) * 20, 1300, 1300),
            "found 0 % of 1320 requests lost at rest, expected 2 %",
        ),
        ({"loss": {"model": "random", "probability": "10 %"}}, RoundTrips(20, (0.3,) * 17, 400, 320), ""),
        (
            {"loss": {"model": "random", "probability": "10 %"}},
            RoundTrips(20, (0.3,) * 20, 400, 400),
            "found 0 % of 420 requests lost at rest, expected 19 %",
        ),
        ({"loss": {"model": "gilbert-elliott", "p": "1 %", "r": "9 %"}}, RoundTrips(20, (0.3,) * 20, 2000, 1650), ""),
    ],
)
def test_delay_and_loss_of_links_are_compared(link: dict[str, Any], trips: RoundTrips, expected: str) -> None:
    cables = {"eth0": CableAnswers({"192.168.20.1": (MACS["Fa1"],)}, trips)}
    found = [str(each) for each in run_checks(preflight_facts(emulated_link(**link), server={"cables": cables}))]
    assert [each.partition(";")[0] for each in found] == ([f"link wan: {expected}"] if expected else [])


def test_ios_xe_router_in_place_of_an_older_one_is_reported() -> None:
    found = run_checks(preflight_facts(release="17.03.04"))
    assert [each.message for each in found] == ["found release 17.03.04 with ios-xe queueing, expected classic"]
