"""Trace of one packet at a router: the lines of its configuration that decide, computed by the simulator's engine."""
