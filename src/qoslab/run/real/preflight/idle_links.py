"""Check that idle links have exactly the experiment's delay, loss and jitter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import quantiles

from qoslab.model.experiment import Link, RandomLoss
from qoslab.run.real.preflight.cabling import has_unchecked_cables
from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding, RoundTrips

REQUEST_BYTES = 100
"""Size of a router's ping, in bytes; ARP requests are smaller."""
SLACK_MS = 8.0
"""Allowed processing time of both ends in the fastest answer."""
SLACK = 0.05
"""Relative tolerance of the delay: its source has a separate clock."""
QUARTILES = {"uniform": 1.17, "normal": 1.91, "exponential": 1.73}
"""Interquartile range of the sum of both directions' delays, relative to the size of the jitter."""
MAX_DECREASE_FACTOR, MAX_INCREASE_FACTOR = 3.0, 3.0
"""Allowed factors of the interquartile range of some forty round trips, below and above the expected one."""
RESOLUTION_MS = 1.0
"""Variation of round trips caused by the two ends themselves."""
MIN_ROUND_TRIPS = 30
"""Least number of round trips, summarised by a router, whose least and greatest differ enough."""
MAX_CORRELATION = 0.5
"""Correlation of successive delays above which a few seconds of samples show little."""
DEVIATIONS = 4.0
"""Allowed standard deviations of a loss share from the expected one."""


def check_idle_links(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check each link from an end that could send requests."""
    for link in facts.experiment.topology.links:
        trips = round_trips(facts, link)
        if trips is None or not trips.took_ms:
            if link.emulated_keys and not has_unchecked_cables(facts):
                message = f"found no host to measure its {' and '.join(link.emulated_keys)}, expected it to be compared"
                yield PreflightFinding(f"link {link.name}", message, "check that its ends respond")
            continue
        yield from _check_delay(link, trips)
        yield from _check_loss(link, trips)
        yield from _check_jitter(link, trips)


def round_trips(facts: PreflightFacts, link: Link) -> RoundTrips | None:
    """Return the round trips of a link; None if neither end could send requests."""
    for near, far in (link.ends, link.ends[::-1]):
        host, router = facts.hosts.get(near.node), facts.routers.get(near.node)
        if host is not None and near.interface in host.cables and host.cables[near.interface].round_trips is not None:
            return host.cables[near.interface].round_trips
        if router is not None and far.address is not None and str(far.address.ip) in router.pings:
            return router.pings[str(far.address.ip)]
    return None


def _check_delay(link: Link, trips: RoundTrips) -> Iterator[PreflightFinding]:
    delay, jitter = 2000 * link.delay.seconds, link.jitter
    spread = 0.0 if jitter is None else 2000 * jitter.size.seconds
    # The fastest answer: a busy machine is late occasionally, a line always. Normal jitter is limited to four
    # deviations.
    earlier = {"uniform": spread, "normal": 4 * spread, "exponential": 0.0}[jitter.distribution] if jitter else 0.0
    line = 2000 * 8 * REQUEST_BYTES / link.rate.bps
    least, most = delay * (1 - SLACK) - earlier - 0.5, delay * (1 + SLACK) + spread + line + SLACK_MS
    found = min(trips.took_ms)
    # A router reports whole milliseconds, rounded down.
    if found < least - 1 or found > most:
        expected = f"{delay:g} ms" if delay else f"at most {most:.0f} ms"
        message = f"found a round trip of {found:.1f} ms at rest, expected {expected}"
        hint = (
            "check the source of this link's delay"
            if delay
            else "check the devices between the ends; the experiment has a plain cable"
        )
        yield PreflightFinding(f"link {link.name}", message, hint)


def _check_loss(link: Link, trips: RoundTrips) -> Iterator[PreflightFinding]:
    one_way = _loss_share(link)
    expected = 1 - (1 - one_way) ** 2
    # The first request is often lost while a router resolves the address.
    lost, sent = trips.lost_count, trips.sent_count
    if not expected:
        if lost > 1:
            message = f"found {lost} of {sent} requests without an answer at rest, expected all answered"
            yield PreflightFinding(
                f"link {link.name}", message, "check the cable, duplex, and other traffic on the link"
            )
        return
    deviation = math.sqrt(expected * (1 - expected) * sent * _burst_variance(link))
    if abs(lost - expected * sent) > DEVIATIONS * deviation + 1:
        message = f"found {100 * lost / sent:.2g} % of {sent} requests lost at rest, expected {100 * expected:.2g} %"
        yield PreflightFinding(
            f"link {link.name}", message, "check the source of this link's loss; both directions count"
        )
    elif expected * sent <= DEVIATIONS * deviation + 1:
        why = f"{sent} requests are too few to distinguish {100 * expected:.2g} % round-trip loss from none"
        yield _unmeasured_finding(link, "loss", why)


def required_requests(link: Link) -> int:
    """Return the number of requests that distinguishes the loss of a link from none; 0 if none is expected."""
    expected = 1 - (1 - _loss_share(link)) ** 2
    if not expected:
        return 0
    # Expected losses exceed their deviations, plus one.
    return math.ceil((DEVIATIONS**2 * (1 - expected) * _burst_variance(link) + 2 * (1 + DEVIATIONS)) / expected)


def _check_jitter(link: Link, trips: RoundTrips) -> Iterator[PreflightFinding]:
    times, jitter = sorted(trips.took_ms), link.jitter
    if jitter is None:
        spread = 0.0 if trips.summed else _interquartile_range(times)
        if spread > SLACK_MS:
            message = f"found that half of the round trips at rest vary by {spread:.1f} ms, expected no jitter"
            hint = "check the devices between the ends, and the load of both ends"
            yield PreflightFinding(f"link {link.name}", message, hint, is_error=False)
        return
    size = 1000 * jitter.size.seconds
    if jitter.correlation.fraction > MAX_CORRELATION:
        yield _unmeasured_finding(link, "jitter", f"successive delays are correlated, by {jitter.correlation}")
        return
    if trips.summed:
        # Only the minimum and maximum are known; with this jitter, they are further apart than this.
        found, least, most = times[-1] - times[0], 2 * size, math.inf
        enough = len(times) >= MIN_ROUND_TRIPS and least > 2 * RESOLUTION_MS
        what = "the round trips at rest are within"
    else:
        expected = QUARTILES[jitter.distribution] * size
        found, least, most = (
            _interquartile_range(times),
            expected / MAX_DECREASE_FACTOR,
            expected * MAX_INCREASE_FACTOR + SLACK_MS,
        )
        enough = least > RESOLUTION_MS
        what = "half of the round trips at rest are within"
    if not enough:
        yield _unmeasured_finding(
            link, "jitter", f"{len(times)} round trips are too few to distinguish {jitter.size} of jitter from none"
        )
    elif not least <= found <= most:
        message = f"found that {what} {found:.1f} ms, expected jitter of {jitter.size} ({jitter.distribution})"
        yield PreflightFinding(
            f"link {link.name}", message, "check the source of this link's jitter; both directions count"
        )


def _interquartile_range(times: Sequence[float]) -> float:
    """Return the interquartile range of the times, which ignores some late answers of a busy machine."""
    if len(times) < 2:
        return 0.0
    first, _, third = quantiles(times, n=4)
    return third - first


def _unmeasured_finding(link: Link, what: str, why: str) -> PreflightFinding:
    message = f"found no measurement of its {what} ({why}), expected one"
    return PreflightFinding(
        f"link {link.name}", message, "measure it yourself, or use a host at one end", is_error=False
    )


def _loss_share(link: Link) -> float:
    """Return the share of frames lost in one direction."""
    loss = link.loss
    if loss is None:
        return 0.0
    if isinstance(loss, RandomLoss):
        return loss.probability.fraction
    turns = loss.p.fraction + loss.r.fraction
    bad = loss.p.fraction / turns if turns else 0.0
    return bad * loss.loss_bad.fraction + (1 - bad) * loss.loss_good.fraction


def _burst_variance(link: Link) -> float:
    """Return the variance of a loss share relative to that of independent losses, since loss states last."""
    loss = link.loss
    if loss is None or isinstance(loss, RandomLoss):
        return 1.0
    retention = abs(1 - loss.p.fraction - loss.r.fraction)
    return (1 + retention) / max(1 - retention, 1e-6)
