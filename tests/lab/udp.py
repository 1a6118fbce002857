"""Program that sends UDP datagrams at an even pace: `udp.py ADDRESS PORT PAYLOAD_BYTES COUNT BITS_PER_SECOND`.

The rate counts frames (payload + 42 bytes). Prints each departure time in seconds, one per line. After a delay it
catches up.
"""

import socket
import sys
import time

HEADERS = 42


def main(address: str, port: int, size: int, count: int, rate: float) -> None:
    """Send the datagrams and print their departure times."""
    gap = (size + HEADERS) * 8 / rate
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect((address, port))
        start, times = time.monotonic(), []
        for number in range(count):
            while (left := start + number * gap - time.monotonic()) > 0:
                time.sleep(left)
            times.append(time.monotonic())
            # Each payload differs, as real ones do.
            connection.send(number.to_bytes(8, "big").ljust(size, b"\0"))
    print(*times, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
