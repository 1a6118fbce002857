"""Counters of the kernel in messages that were recorded."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from qoslab.tc.kernel_counts import QdiscCounters, qdisc_counters
from qoslab.tc.rtnetlink_dump import message_of
from tc_counters import RECORDED, assert_counters_are_those_of_tc

FOUND = json.loads(RECORDED.read_text(encoding="utf-8"))


def decoded(name: str) -> list[QdiscCounters]:
    messages = (message_of(bytes.fromhex(each)) for some in FOUND[name]["messages"].values() for each in some)
    return [qdisc_counters(each) for each in messages]


@pytest.mark.parametrize("name", FOUND)
def test_counters_are_those_that_tc_printed(name: str) -> None:
    assert_counters_are_those_of_tc([asdict(each) for each in decoded(name)], FOUND[name]["tc"])


def test_a_value_that_the_kernel_does_not_count_is_none() -> None:
    sfq = next(each for each in decoded("sfq") if each.kind == "sfq")
    assert (sfq.ecn_marks, sfq.early_drops, sfq.delay_us, sfq.tins) == (None, None, None, ())
    assert sfq.drops is not None and sfq.drops > 0


def test_class_of_htb_counts_what_it_borrowed() -> None:
    found = [each for each in decoded("red") if each.kind == "htb" and each.handle == "1:1"]
    assert [each.borrowed for each in found] == [0]
