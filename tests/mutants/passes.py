"""How the tests of qos-core are built and run for a change: quickly first, then all of them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

PACKAGE = "qos-core"
MEMORY_BYTES = 4 * 2**30
CPU_TIMES = 5
"""Of the processor's time that tests need without a change; those that need more have noticed."""
SLOW = (
    "cells::a_shaper_accounts_for_what_lies_behind",
    "cells::parts_of_a_line_are_by_the_accounted_length",
    "classic_queueing::a_flood_of_random_sizes_has_its_steady_state_at_once",
    "dynamic_bucket::the_start_does_not_matter",
    "fairness::conversations_get_weighted_bytes",
    "fairness::flows_get_equal_bytes",
    "later_queueing::depths_shown_include_the_ring",
    "links::delays_are_distributed_as_asked_for",
    "links::losses_are_as_frequent_and_as_long_as_asked_for",
    "priority::congestion_holds_a_priority_class_to_its_rate",
    "priority::waits_behind_the_ring_are_less_than_published_round_trips",
    "priority_propagation::the_rest_is_shared_as_if_there_were_no_voice",
    "programs::",
    "random_detect::drops_",
    "random_detect::half_way_half_of_the_greatest_share_is_marked",
    "rates::a_shaper_keeps_its_rate",
    "shaper_release::a_classic_shaper_does_not_look_at_the_line",
    "shares::",
    "srr::a_shaped_queue_gets_its_part",
    "srr::every_cell_comes_back",
    "srr::stalls_of_the_caller_cost_nothing",
    "srr::weighted_tail_drop_begins_above_the_threshold",
    "subinterfaces::any_load_is_accounted_for_and_within_the_shapes",
    "subinterfaces::two_subinterfaces_each_get_their_shape_with_priority_and_bandwidth_below",
    "tx_ring_delays::",
)
"""Not optimised they take half a second or more each, 50 s together where the other tests take 5."""


@dataclass(frozen=True)
class Pass:
    """How the tests are built and run."""

    cpu_s: int
    """Of a test program that has one change alone: five times what it takes without."""
    targets: tuple[str, ...]
    tests: tuple[str, ...]
    environment: dict[str, str]


# Libtest ends at the first failure only where it believes to be unstable; of the program alone, not of rustc.
_AT_ONCE = ("-Z", "unstable-options", "--fail-fast")
QUICK = Pass(
    25,
    ("--test", "it"),
    (*_AT_ONCE, *(part for name in SLOW for part in ("--skip", name))),
    {"QOS_CASES_AT_MOST": "8", "PROPTEST_CASES": "32"},
)
FULL = Pass(
    60,
    ("--lib", "--test", "it"),
    _AT_ONCE,
    # Compiled in 25 s then and not in 5, but done in 12 and not in 70.
    {"CARGO_PROFILE_MUTANTS_OPT_LEVEL": "1"},
)
COMMON = {
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
    # The same cases for each change, so that one that lives does so in the next round, too.
    "PROPTEST_RNG_SEED": "1",
    "CARGO_TERM_COLOR": "never",
}


def environment(how: Pass) -> dict[str, str]:
    """Of cargo; the limits are those of test programs alone."""
    host = subprocess.run(["rustc", "-vV"], text=True, stdout=subprocess.PIPE, check=True).stdout
    triple = next(line.split()[1] for line in host.splitlines() if line.startswith("host:"))
    runner = f"env {' '.join(UNSTABLE)} {' '.join(limits(how.cpu_s))}"
    variables = {key: value for key, value in os.environ.items() if key != "CARGO_TARGET_DIR"}
    return {**variables, **COMMON, **how.environment, f"CARGO_TARGET_{triple.upper().replace('-', '_')}_RUNNER": runner}


UNSTABLE = ("RUSTC_BOOTSTRAP=1",)
"""What makes libtest believe so."""


def limits(cpu_s: int) -> list[str]:
    """Words before a test program."""
    return ["prlimit", f"--cpu={cpu_s}", f"--as={MEMORY_BYTES}", "--"]
