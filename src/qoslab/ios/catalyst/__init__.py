"""The Catalyst 3750: features of a switch in addition to, or in place of, those of a router."""
