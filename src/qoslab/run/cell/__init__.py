"""Measurement of one cell: captures, traffic, probes, counters and observations, in the order of the plan."""
