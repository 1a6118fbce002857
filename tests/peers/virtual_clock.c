/* Virtual time for user-mode Linux: a library for LD_PRELOAD.
 *
 * The kernel of Debian's package user-mode-linux has no time travel of its own. It reads its clock and sets its timer by
 * functions of the C library, which this library replaces once the file named by QOSLAB_VIRTUAL_CLOCK begins with "1":
 * the clock then stands still while anything runs, and jumps to the next timer when the kernel is idle. Before that,
 * while the kernel starts, time is real: it waits for ticks without being idle.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile char *command;
static int is_virtual;
static int64_t now_ns, deadline_ns, interval_ns;

static int64_t in_ns(const struct timespec *time)
{
	return time->tv_sec * SECOND + time->tv_nsec;
}

static struct timespec as_time(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

static int64_t real_ns(void)
{
	struct timespec time;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
	return in_ns(&time);
}

static void open_command(void)
{
	static const char real[] = "0";
	const char *path = getenv("QOSLAB_VIRTUAL_CLOCK");
	int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);

	command = mapped == MAP_FAILED ? real : mapped;
	if (file >= 0)
		close(file);
}

static int virtual_time(void)
{
	if (command == NULL)
		open_command();
	if (!is_virtual && *command == '1') {
		is_virtual = 1;
		now_ns = real_ns();
	}
	return is_virtual;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!virtual_time() || clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, time);
	*time = as_time(now_ns);
	return 0;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	static int (*settime)(timer_t, int, const struct itimerspec *, struct itimerspec *);
	int virtually = virtual_time();
	int64_t from = virtually ? now_ns : real_ns(), after = in_ns(&value->it_value);

	if (settime == NULL)
		settime = dlsym(RTLD_NEXT, "timer_settime");
	deadline_ns = after == 0 ? 0 : flags & TIMER_ABSTIME ? after : from + after;
	interval_ns = in_ns(&value->it_interval);
	if (!virtually)
		return settime(timer, flags, value, old);
	if (old != NULL)
		memset(old, 0, sizeof *old);
	return 0;
}

int timer_gettime(timer_t timer, struct itimerspec *value)
{
	static int (*gettime)(timer_t, struct itimerspec *);

	if (gettime == NULL)
		gettime = dlsym(RTLD_NEXT, "timer_gettime");
	if (!virtual_time())
		return gettime(timer, value);
	value->it_interval = as_time(interval_ns);
	value->it_value = as_time(deadline_ns == 0 ? 0 : deadline_ns > now_ns ? deadline_ns - now_ns : 1);
	return 0;
}

/* The kernel waits here when it is idle; the signal of its timer, blocked until then, is sent in place of the wait. */
int sigsuspend(const sigset_t *mask)
{
	static int (*suspend)(const sigset_t *);

	if (suspend == NULL)
		suspend = dlsym(RTLD_NEXT, "sigsuspend");
	if (virtual_time() && deadline_ns != 0) {
		now_ns = deadline_ns > now_ns ? deadline_ns : now_ns;
		deadline_ns = interval_ns == 0 ? 0 : now_ns + interval_ns;
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGALRM);
	}
	return suspend(mask);
}
