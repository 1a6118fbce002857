"""Voice quality by the E-model of ITU-T G.107 (06/2015): transmission rating factor R and estimated MOS.

Delays are milliseconds, losses percent; other parameters have the units of G.107, table 2, and its default values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log10, sqrt

from qoslab.model.traffic_kinds import Codec

BEST_DELAYS = 200
"""Maximum number of delays of the playout buffer that are tried."""


@dataclass(frozen=True, slots=True)
class VoiceConnection:
    """Parameters of a connection with the default values of G.107, table 2."""

    sending_loudness_db: float = 8.0
    """SLR: sending loudness rating."""
    receiving_loudness_db: float = 2.0
    """RLR: receiving loudness rating."""
    sidetone_db: float = 15.0
    """STMR: sidetone masking rating."""
    sending_d_factor: float = 3.0
    """Ds: D-value of the telephone, sending side."""
    receiving_d_factor: float = 3.0
    """Dr: D-value of the telephone, receiving side."""
    talker_echo_loudness_db: float = 65.0
    """TELR: talker echo loudness rating."""
    listener_echo_loss_db: float = 110.0
    """WEPL: weighted echo path loss."""
    one_way_delay_ms: float = 0.0
    """T: mean one-way delay of the echo path."""
    round_trip_ms: float = 0.0
    """Tr: round-trip delay in a 4-wire loop."""
    absolute_delay_ms: float = 0.0
    """Ta: absolute delay in echo-free connections."""
    quantization_units: float = 1.0
    """qdu: number of quantization distortion units."""
    equipment_impairment: float = 0.0
    """Ie: equipment impairment factor."""
    loss_robustness: float = 4.3
    """Bpl: packet-loss robustness factor."""
    loss_percent: float = 0.0
    """Ppl: random packet-loss probability."""
    burst_ratio: float = 1.0
    """BurstR: burst ratio."""
    delay_sensitivity: float = 1.0
    """sT: delay sensitivity."""
    min_delay_ms: float = 100.0
    """mT: minimum perceivable delay."""
    circuit_noise_dbm0p: float = -70.0
    """Nc: circuit noise."""
    noise_floor_dbmp: float = -64.0
    """Nfor: noise floor at the receiving side."""
    sending_room_noise_dba: float = 35.0
    """Ps: room noise at the sending side."""
    receiving_room_noise_dba: float = 35.0
    """Pr: room noise at the receiving side."""
    advantage: float = 0.0
    """A: advantage factor."""

    def with_delay(self, delay_ms: float) -> VoiceConnection:
        """Return the connection with the same delay each way: T = Ta, Tr = 2 T."""
        return replace(self, one_way_delay_ms=delay_ms, absolute_delay_ms=delay_ms, round_trip_ms=2 * delay_ms)


def rating(connection: VoiceConnection) -> float:
    """Return R (G.107, clause 7.1): 93.2 with default values; below 0 for a useless connection."""
    noise = _noise_level(connection)
    basic = 15 - 1.5 * (connection.sending_loudness_db + noise)
    simultaneous = _simultaneous_impairment(connection, basic, noise)
    delayed = _delay_impairment(connection, basic, noise)
    return basic - simultaneous - delayed - equipment_factor(connection) + connection.advantage


def equipment_factor(connection: VoiceConnection) -> float:
    """Return Ie,eff (clause 7.5): impairment by the codec and by random packet loss."""
    loss = connection.loss_percent
    base = connection.equipment_impairment
    if loss <= 0:
        return base
    return base + (95 - base) * loss / (loss / connection.burst_ratio + connection.loss_robustness)


def mean_opinion_score(rating_factor: float) -> float:
    """Return the estimated conversational MOS (G.107, Annex B): 1 to 4.5."""
    r = rating_factor
    if r <= 0:
        return 1.0
    if r >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def _sum_powers(*levels: float) -> float:
    return 10 * log10(sum(10 ** (level / 10) for level in levels))


def _noise_level(c: VoiceConnection) -> float:
    """Return No (clause 7.2)."""
    overall = c.sending_loudness_db + c.receiving_loudness_db
    sending = (
        c.sending_room_noise_dba
        - c.sending_loudness_db
        - c.sending_d_factor
        - 100
        + 0.004 * (c.sending_room_noise_dba - overall - c.sending_d_factor - 14) ** 2
    )
    listener_sidetone = c.sidetone_db + c.receiving_d_factor
    effective = c.receiving_room_noise_dba + 10 * log10(1 + 10 ** ((10 - listener_sidetone) / 10))
    receiving = c.receiving_loudness_db - 121 + effective + 0.008 * (effective - 35) ** 2
    floor = c.noise_floor_dbmp + c.receiving_loudness_db
    return _sum_powers(c.circuit_noise_dbm0p, sending, receiving, floor)


def _sidetone_impairment(c: VoiceConnection) -> float:
    """Return Ist (clause 7.3)."""
    echo = exp(-c.one_way_delay_ms / 4) * 10 ** (-c.talker_echo_loudness_db / 10)
    level = -10 * log10(10 ** (-c.sidetone_db / 10) + echo)
    return float(
        12 * (1 + ((level - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + ((level + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + ((level - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )


def _simultaneous_impairment(c: VoiceConnection, basic: float, noise: float) -> float:
    """Return Is (clause 7.3)."""
    overall = c.sending_loudness_db + c.receiving_loudness_db
    x = overall + 0.2 * (64 + noise - c.receiving_loudness_db)
    loudness = 20 * ((1 + (x / 8) ** 8) ** (1 / 8) - x / 8)
    q = 37 - 15 * log10(c.quantization_units)
    g = 1.07 + 0.258 * q + 0.0602 * q**2
    y = (basic - 100) / 15 + 46 / 8.4 - g / 9
    z = 46 / 30 - g / 40
    return float(loudness) + _sidetone_impairment(c) + 15 * log10(1 + 10**y + 10**z)


def _delay_impairment(c: VoiceConnection, basic: float, noise: float) -> float:
    """Return Id (clause 7.4): impairment by talker echo, listener echo and absolute delay."""
    t = c.one_way_delay_ms
    echo = c.talker_echo_loudness_db - 40 * log10((1 + t / 10) / (1 + t / 150)) + 6 * exp(-0.3 * t**2)
    if c.sidetone_db < 9:
        echo += _sidetone_impairment(c) / 2
    best, found = -1.5 * (noise - c.receiving_loudness_db), 80 + 2.5 * (echo - 14)
    talker = ((best - found) / 2 + sqrt((best - found) ** 2 / 4 + 100) - 1) * (1 - exp(-t))
    if c.sidetone_db > 20:
        talker = sqrt(talker**2 + _sidetone_impairment(c) ** 2)
    weighted = 10.5 * (c.listener_echo_loss_db + 7) / sqrt(sqrt(c.round_trip_ms + 1))
    listener = (basic - weighted) / 2 + sqrt((basic - weighted) ** 2 / 4 + 169)
    return talker + listener + _absolute_delay_impairment(c)


def _absolute_delay_impairment(c: VoiceConnection) -> float:
    """Return Idd (clause 7.4)."""
    if c.absolute_delay_ms <= c.min_delay_ms:
        return 0.0
    x, power = log10(c.absolute_delay_ms / c.min_delay_ms) / log10(2), 6 * c.delay_sensitivity
    return 25 * float((1 + x**power) ** (1 / power) - 3 * (1 + (x / 3) ** power) ** (1 / power) + 2)


@dataclass(frozen=True, slots=True)
class VoiceScore:
    """Quality of calls."""

    rating: float
    """Rating factor R."""
    mos: float
    playout_ms: float
    """Total network delay of each packet including its wait in the receiver's playout buffer."""
    loss_percent: float
    """Packets that did not arrive before their playout."""


def best_voice_score(codec: Codec, delays_ns: Sequence[tuple[int, int]], sent: int) -> VoiceScore | None:
    """Return the best score with a playout buffer of constant delay; None if nothing was sent.

    `delays_ns` has the one-way delays of the network, ascending, each with its number of packets. A packet whose delay
    is longer than the buffer's is lost.
    """
    if sent <= 0:
        return None
    base = replace(VoiceConnection(), equipment_impairment=codec.impairment, loss_robustness=codec.robustness)
    if not delays_ns:
        lost = rating(replace(base, loss_percent=100.0))
        return VoiceScore(lost, mean_opinion_score(lost), 0.0, 100.0)
    step = max(1, len(delays_ns) // BEST_DELAYS)
    best: VoiceScore | None = None
    arrived = 0
    for number, (delay, packets) in enumerate(delays_ns, 1):
        arrived += packets
        if number % step and number < len(delays_ns):
            continue
        loss = max(0.0, 100 * (1 - arrived / sent))
        found = rating(replace(base, loss_percent=loss).with_delay(delay / 1e6 + codec.delay_ms))
        if best is None or found > best.rating:
            best = VoiceScore(found, mean_opinion_score(found), delay / 1e6, loss)
    return best
