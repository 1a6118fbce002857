/* Program of user-mode Linux.
 *
 * guest PACKETS TIMES OUT IN END  sends packets out of one interface and writes the times of their arrival at another.
 *
 * PACKETS has of each packet its time (u64, ns), its layer-2 bytes (u32) and its class (u32); TIMES gets of each packet
 * when it was sent and when it arrived (two u64, ns; 0: never). Little-endian, in the order of their times. The program
 * ends END nanoseconds after its start. Frames have the class in the first two bytes behind the Ethernet header and
 * the number of the packet behind that.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ETHERTYPE 0x88b5 /* IEEE: local experiments */
#define SECOND 1000000000ULL
#define AT_ONCE 64
#define HEADER 14
#define KEPT 64

struct packet {
	uint64_t time;
	uint32_t bytes, class;
};

struct times {
	uint64_t sent, arrived;
};

static void require(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "guest: %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec time = { .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

static int packet_socket(const char *interface, int protocol)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = if_nametoindex(interface),
	};
	int socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), room = 64 << 20, yes = 1;

	require(socket_ >= 0, "socket");
	setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
	setsockopt(socket_, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes);
	require(bind(socket_, (struct sockaddr *)&address, sizeof address) == 0, interface);
	return socket_;
}

static void receive(int from, struct times *times, uint64_t count, uint64_t wall_ahead)
{
	static uint8_t frames[AT_ONCE][KEPT], controls[AT_ONCE][128];
	struct mmsghdr messages[AT_ONCE];
	struct iovec parts[AT_ONCE];
	int got;

	do {
		memset(messages, 0, sizeof messages);
		for (int i = 0; i < AT_ONCE; i++) {
			parts[i] = (struct iovec){ frames[i], KEPT };
			messages[i].msg_hdr.msg_iov = &parts[i];
			messages[i].msg_hdr.msg_iovlen = 1;
			messages[i].msg_hdr.msg_control = controls[i];
			messages[i].msg_hdr.msg_controllen = sizeof controls[i];
		}
		got = recvmmsg(from, messages, AT_ONCE, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (int i = 0; i < got; i++) {
			struct cmsghdr *control = CMSG_FIRSTHDR(&messages[i].msg_hdr);
			struct timespec stamp;
			uint64_t number;

			memcpy(&number, frames[i] + HEADER + 2, sizeof number);
			require(control != NULL && number < count, "a frame without a stamp or number");
			memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
			times[number].arrived = stamp.tv_sec * SECOND + stamp.tv_nsec - wall_ahead;
		}
	} while (got == AT_ONCE);
}

static uint64_t send_group(int to, const struct packet *packets, uint64_t first, uint64_t count)
{
	static uint8_t frames[AT_ONCE][2048];
	struct mmsghdr messages[AT_ONCE];
	struct iovec parts[AT_ONCE];
	uint64_t group = 0;

	memset(messages, 0, sizeof messages);
	while (group < AT_ONCE && first + group < count && packets[first + group].time == packets[first].time) {
		const struct packet *packet = &packets[first + group];
		uint64_t number = first + group;
		uint16_t type = htons(ETHERTYPE), class = htons(packet->class);
		uint8_t *frame = frames[group];

		memset(frame, 0xff, 6);
		memcpy(frame + 12, &type, sizeof type);
		memcpy(frame + HEADER, &class, sizeof class);
		memcpy(frame + HEADER + 2, &number, sizeof number);
		parts[group] = (struct iovec){ frame, packet->bytes };
		messages[group].msg_hdr.msg_iov = &parts[group];
		messages[group].msg_hdr.msg_iovlen = 1;
		group++;
	}
	for (uint64_t done = 0; done < group;) {
		int sent = sendmmsg(to, messages + done, group - done, 0);

		/* A full queue of the interface refuses a frame: it is dropped. */
		require(sent > 0 || errno == ENOBUFS, "send");
		done += sent > 0 ? sent : 1;
	}
	return group;
}

static void send_all(char **arguments)
{
	int file = open(arguments[0], O_RDONLY | O_CLOEXEC), to, from;
	struct packet *packets;
	struct times *times;
	struct stat size;
	uint64_t count, start, wall_ahead;
	FILE *written;

	require(file >= 0 && fstat(file, &size) == 0, arguments[0]);
	count = size.st_size / sizeof *packets;
	packets = malloc(size.st_size);
	for (off_t done = 0, got; done < size.st_size; done += got)
		require((got = read(file, (char *)packets + done, size.st_size - done)) > 0, arguments[0]);
	times = calloc(count, sizeof *times);
	to = packet_socket(arguments[2], 0);
	from = packet_socket(arguments[3], ETHERTYPE);
	prctl(PR_SET_TIMERSLACK, 1);
	start = clock_ns(CLOCK_MONOTONIC) + SECOND;
	wall_ahead = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	for (uint64_t next = 0, group; next < count; next += group) {
		uint64_t now;

		sleep_until(start + packets[next].time);
		now = clock_ns(CLOCK_MONOTONIC);
		group = send_group(to, packets, next, count);
		require(clock_ns(CLOCK_MONOTONIC) == now, "time went on while packets were sent");
		for (uint64_t i = next; i < next + group; i++)
			times[i].sent = now - start;
		receive(from, times, count, wall_ahead + start);
	}
	sleep_until(start + strtoull(arguments[4], NULL, 10));
	receive(from, times, count, wall_ahead + start);
	require((written = fopen(arguments[1], "wb")) != NULL, arguments[1]);
	require(fwrite(times, sizeof *times, count, written) == count && fclose(written) == 0, arguments[1]);
}

int main(int count, char **arguments)
{
	require(count == 6, "usage: guest PACKETS TIMES OUT IN END");
	send_all(arguments + 1);
	return 0;
}
