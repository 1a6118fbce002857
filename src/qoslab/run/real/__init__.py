"""Real routers and hosts of an inventory: access, agents on hosts, preflight checks, restoration."""
