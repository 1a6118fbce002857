/* Decisions of DPDK's rte_meter on given packets.
 *
 * rte_meter METERS           prints the period (cycles) and the bytes of each period of both rates of each meter.
 * rte_meter METERS PACKETS   writes one byte for each packet: 1 green, 2 yellow, 3 red.
 *
 * METERS has a line for each meter: cycles a second, committed rate (bytes a second), committed burst (bytes), peak rate,
 * excess or peak burst, number of packets. Without a peak rate (0) the meter is RFC 2697's, otherwise RFC 2698's; both
 * are colour-blind. PACKETS has the packets of all meters in this order, each with its arrival (u64, cycles) and its
 * bytes (u32), little-endian.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_meter.h>

static uint64_t cycles_a_second;

/* The library asks for the frequency of its clock; without an environment (EAL) there is no other definition. */
uint64_t rte_get_tsc_hz(void);
uint64_t rte_get_tsc_hz(void)
{
	return cycles_a_second;
}

struct meter {
	uint64_t cir, cbs, pir, ebs, packets;
};

static void require(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "rte_meter: %s\n", what);
		exit(1);
	}
}

static int next(FILE *packets, uint64_t *cycles, uint32_t *bytes)
{
	return fread(cycles, sizeof *cycles, 1, packets) == 1 && fread(bytes, sizeof *bytes, 1, packets) == 1;
}

static void one_rate(const struct meter *given, FILE *packets)
{
	struct rte_meter_srtcm_params rates = { .cir = given->cir, .cbs = given->cbs, .ebs = given->ebs };
	struct rte_meter_srtcm_profile profile;
	struct rte_meter_srtcm meter;
	uint64_t cycles;
	uint32_t bytes;

	require(rte_meter_srtcm_profile_config(&profile, &rates) == 0, "a profile with one rate was refused");
	require(rte_meter_srtcm_config(&meter, &profile) == 0, "a meter with one rate was refused");
	meter.time = 0;
	if (packets == NULL)
		printf("%" PRIu64 " %" PRIu64 " 0 0\n", profile.cir_period, profile.cir_bytes_per_period);
	for (uint64_t number = 0; packets != NULL && number < given->packets; number++) {
		require(next(packets, &cycles, &bytes), "too few packets");
		putchar(1 + rte_meter_srtcm_color_blind_check(&meter, &profile, cycles, bytes));
	}
}

static void two_rates(const struct meter *given, FILE *packets)
{
	struct rte_meter_trtcm_params rates = {
		.cir = given->cir, .cbs = given->cbs, .pir = given->pir, .pbs = given->ebs,
	};
	struct rte_meter_trtcm_profile profile;
	struct rte_meter_trtcm meter;
	uint64_t cycles;
	uint32_t bytes;

	require(rte_meter_trtcm_profile_config(&profile, &rates) == 0, "a profile with two rates was refused");
	require(rte_meter_trtcm_config(&meter, &profile) == 0, "a meter with two rates was refused");
	meter.time_tc = meter.time_tp = 0;
	if (packets == NULL)
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", profile.cir_period,
		       profile.cir_bytes_per_period, profile.pir_period, profile.pir_bytes_per_period);
	for (uint64_t number = 0; packets != NULL && number < given->packets; number++) {
		require(next(packets, &cycles, &bytes), "too few packets");
		putchar(1 + rte_meter_trtcm_color_blind_check(&meter, &profile, cycles, bytes));
	}
}

int main(int count, char **arguments)
{
	FILE *meters, *packets = NULL;
	struct meter meter;

	require(count == 2 || count == 3, "usage: rte_meter METERS [PACKETS]");
	require((meters = fopen(arguments[1], "r")) != NULL, "cannot read METERS");
	require(count == 2 || (packets = fopen(arguments[2], "rb")) != NULL, "cannot read PACKETS");
	while (fscanf(meters, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &cycles_a_second,
		      &meter.cir, &meter.cbs, &meter.pir, &meter.ebs, &meter.packets) == 6)
		(meter.pir ? two_rates : one_rate)(&meter, packets);
	return 0;
}
