"""The Linux kernel as a router: its queueing disciplines, configured by tc(8)."""
