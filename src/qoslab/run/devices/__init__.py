"""Routers that are configured and observed: Ansible's session and inventory, the observer with Unicon and Genie."""
