"""Program that sends ICMP echo requests:

`ping.py ADDRESS COUNT INTERVAL_S WAIT_S`. Prints the number of replies within WAIT_S and the round-trip times.

So test machines need no `ping`. It needs CAP_NET_RAW. Like in ping(8) the time of a reply is its kernel time stamp,
independent of the scheduling of this process.
"""

import select
import socket
import struct
import sys
import time

SO_TIMESTAMPNS = 35
"""Socket option from asm-generic/socket.h; Python's module lacks it."""


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def main(address: str, count: int, interval: float, wait: float) -> None:
    """Send the requests and print one line of JSON."""
    times = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as connection:
        connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        for number in range(count):
            body = struct.pack("!HH", 77, number) + bytes(56)
            packet = struct.pack("!BBH", 8, 0, checksum(struct.pack("!HH", 8 << 8, 0) + body)) + body
            end = time.monotonic() + wait
            sent = time.time_ns()
            connection.sendto(packet, (address, 0))
            while (left := end - time.monotonic()) > 0 and select.select([connection], [], [], left)[0]:
                datagram, ((_, _, stamp), *_), _, _ = connection.recvmsg(2000, socket.CMSG_SPACE(16))
                reply = datagram[20:]
                if reply[0] == 0 and reply[4:8] == packet[4:8]:
                    seconds, nanoseconds = struct.unpack("qq", stamp)
                    times.append((seconds * 1_000_000_000 + nanoseconds - sent) / 1e9)
                    break
            time.sleep(interval)
    print(len(times), *times)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
