"""Ansible as one process that stays for a run, and its connection helper without the start-up cost."""
