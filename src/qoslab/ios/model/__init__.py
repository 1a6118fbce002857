"""Device model: a running configuration as values, names, and the interface to the hardware models."""
