"""Ansible as one process for the whole run, and its connection helper without the start-up cost."""
