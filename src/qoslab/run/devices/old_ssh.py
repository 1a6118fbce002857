"""SSH algorithms of IOS 12, and the client options that accept them."""

from __future__ import annotations

OLD_KEY_EXCHANGES = ("diffie-hellman-group14-sha1", "diffie-hellman-group-exchange-sha1", "diffie-hellman-group1-sha1")
OLD_CIPHERS = ("aes256-cbc", "aes192-cbc", "aes128-cbc", "3des-cbc")
OLD_MACS = ("hmac-sha1", "hmac-md5")
OLD_SIGNATURES = ("ssh-rsa",)
"""Old host key signatures, RSA with SHA-1."""
OLD = frozenset((*OLD_KEY_EXCHANGES, *OLD_CIPHERS, *OLD_MACS, *OLD_SIGNATURES))
"""Algorithms offered by IOS 12.4 and 12.2SE [R], accepted only for such devices."""

OPENSSH_OLD = (
    f"-oKexAlgorithms=+{','.join(OLD_KEY_EXCHANGES)}",
    f"-oHostKeyAlgorithms=+{','.join(OLD_SIGNATURES)}",
    f"-oCiphers=+{','.join(OLD_CIPHERS)}",
    f"-oMACs=+{','.join(OLD_MACS)}",
)
"""OpenSSH options for a login to such devices."""
