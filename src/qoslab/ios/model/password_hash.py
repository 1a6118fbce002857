"""Password hashes in a configuration: type 5, MD5-crypt, as in `enable secret` of IOS 12.4 and 15."""

from __future__ import annotations

import functools
import hashlib
import hmac

from qoslab.ios.model.device import Secret

_ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ROUNDS = 1000


def hash_password(password: str) -> Secret:
    """Return the type 5 secret of a password.

    The salt is derived from the password, so that the same configuration always has the same text. This is weaker
    than a random salt: two devices with one password show the same secret.
    """
    digest = hashlib.sha256(b"qoslab salt " + password.encode()).digest()
    salt = "".join(_ALPHABET[byte & 63] for byte in digest[:4])
    return Secret(5, md5_crypt(password, salt))


def verify(secret: Secret, password: str) -> bool:
    """Return whether `password` matches `secret`."""
    if secret.kind == 0:
        return hmac.compare_digest(secret.text.encode(), password.encode())
    parts = secret.text.split("$")
    return len(parts) == 4 and hmac.compare_digest(md5_crypt(password, parts[2]).encode(), secret.text.encode())


@functools.lru_cache(maxsize=64)
def md5_crypt(password: str, salt: str) -> str:
    """Return the MD5-crypt text `$1$SALT$HASH`, the format of FreeBSD's crypt(3), which uses 8 characters of salt."""
    key, seed = password.encode(), salt[:8].encode()
    inner = hashlib.md5(key + seed + key).digest()
    start = key + b"$1$" + seed + (inner * (len(key) // 16 + 1))[: len(key)]
    length = len(key)
    while length:
        start += b"\0" if length & 1 else key[:1]
        length >>= 1
    digest = hashlib.md5(start).digest()
    for turn in range(_ROUNDS):
        block = key if turn & 1 else digest
        if turn % 3:
            block += seed
        if turn % 7:
            block += key
        digest = hashlib.md5(block + (digest if turn & 1 else key)).digest()
    groups = [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)]
    text = "".join(_crypt_base64(digest[a] << 16 | digest[b] << 8 | digest[c], 4) for a, b, c in groups)
    return f"$1${salt[:8]}${text}{_crypt_base64(digest[11], 2)}"


def _crypt_base64(value: int, count: int) -> str:
    return "".join(_ALPHABET[value >> 6 * index & 63] for index in range(count))
