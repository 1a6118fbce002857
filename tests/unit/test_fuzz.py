"""Lengths of the inputs of fuzz targets."""

from __future__ import annotations

from script import load_script


def test_most_seeds_of_each_target_fit_into_its_length() -> None:
    fuzz = load_script("benches/fuzz.py")
    targets = fuzz.targets()
    assert set(fuzz.LENGTHS) == set(targets) and set(fuzz.OPTIONS) <= set(targets)
    for name, target in targets.items():
        # The fuzzer truncates longer seeds, after which most are useless, except for sequences of steps.
        seeds = list(target.corpus.iterdir())
        whole = [seed.name for seed in seeds if seed.stat().st_size <= target.longest]
        assert 2 * len(whole) > len(seeds) or name in ("program", "sla"), (name, whole)
