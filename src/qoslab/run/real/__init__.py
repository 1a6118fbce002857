"""Real routers and hosts of an inventory: access to them, agents on hosts, preflight checks, restoration."""
