"""Carries out a plan: the only place, beside `lab`, with subprocesses, sockets, Ansible and the clock."""
