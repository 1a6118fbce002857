"""Comparison of a router's show output with the pushed configuration. Pure; an Ansible filter uses it too."""
