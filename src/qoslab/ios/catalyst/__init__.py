"""The Catalyst 3750: what a switch has beyond a router, or in place of it."""
