"""The device model: what a running configuration says, as values; names, and what is asked of the hardware."""
