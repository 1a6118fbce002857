"""What a router shows of its configuration, compared with what was asked for. Pure; an Ansible filter uses it too."""
