"""Sends ICMP echo requests: `ping.py ADDRESS COUNT INTERVAL_S`. Prints how many were answered and the round-trip times.

Machines that run the tests need no `ping` then. It needs CAP_NET_RAW.
"""

import select
import socket
import struct
import sys
import time


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def main(address: str, count: int, interval: float) -> None:
    """Pings and prints one JSON-like line."""
    times = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as connection:
        for number in range(count):
            body = struct.pack("!HH", 77, number) + bytes(56)
            packet = struct.pack("!BBH", 8, 0, checksum(struct.pack("!HH", 8 << 8, 0) + body)) + body
            sent = time.monotonic()
            connection.sendto(packet, (address, 0))
            while (left := sent + 1 - time.monotonic()) > 0 and select.select([connection], [], [], left)[0]:
                reply = connection.recv(2000)[20:]
                if reply[0] == 0 and reply[4:8] == packet[4:8]:
                    times.append(time.monotonic() - sent)
                    break
            time.sleep(interval)
    print(len(times), *times)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
