"""One cell while it runs: captures, traffic, probes, counters and observations, in the order of the plan."""
