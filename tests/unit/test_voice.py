"""Voice quality by ITU-T G.107, against its published values and those of G.109 and G.113."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qoslab.model.traffic_kinds import CATALOGUE, G711, G729, KINDS
from qoslab.model.voice import VoiceConnection, best_voice_score, equipment_factor, mean_opinion_score, rating


def test_default_voice_parameters_give_the_published_rating() -> None:
    # G.107, table 2 and clause 7.7: R = 93.2, and by Annex B MOS 4.41.
    assert round(rating(VoiceConnection()), 1) == 93.2
    assert round(mean_opinion_score(rating(VoiceConnection())), 2) == 4.41


@pytest.mark.parametrize(("factor", "mos"), [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_mos_of_a_rating_equals_g109(factor: float, mos: float) -> None:
    assert mean_opinion_score(factor) == pytest.approx(mos, abs=0.007)


def test_mos_is_clamped_to_its_limits() -> None:
    assert [mean_opinion_score(each) for each in (-20, 0, 3, 100, 110)] == [1, 1, 1, 4.5, 4.5]


@pytest.mark.parametrize(("codec", "loss", "impairment"), [(G711, 2, 7), (G729, 0, 11), (G729, 2, 19)])
def test_codec_impairment_equals_g113(codec: object, loss: float, impairment: float) -> None:
    assert codec in (G711, G729)
    used = G711 if codec is G711 else G729
    connection = replace(
        VoiceConnection(),
        equipment_impairment=used.impairment,
        loss_robustness=used.robustness,
        loss_percent=loss,
    )
    assert equipment_factor(connection) == pytest.approx(impairment, abs=0.05)
    assert rating(connection) == pytest.approx(93.2 - impairment, abs=0.1)


def test_delay_below_100_ms_costs_little_and_400_ms_much() -> None:
    # G.114, figure 1: a curve that is flat up to 150 ms and steep beyond 250 ms.
    ratings = [rating(VoiceConnection().with_delay(delay)) for delay in (0, 100, 150, 250, 320, 400)]
    assert ratings == sorted(ratings, reverse=True)
    assert ratings[0] - ratings[2] < 4
    assert 65 < ratings[4] < 75
    assert ratings[5] < 65


def test_echo_and_listener_echo_lower_the_rating() -> None:
    late = VoiceConnection().with_delay(50)
    assert rating(replace(late, talker_echo_loudness_db=35)) < rating(late) - 15
    assert rating(replace(late, listener_echo_loss_db=20)) < rating(late) - 10


def test_playout_buffer_drops_a_few_late_packets() -> None:
    delays = [(20_000_000, 995), (600_000_000, 5)]
    found = best_voice_score(G711, delays, 1000)
    assert found is not None
    assert (found.playout_ms, found.loss_percent) == (20, pytest.approx(0.5))
    # With 40 ms of network and packet delay, and half a percent of loss.
    assert found.rating == pytest.approx(90.2, abs=0.5)
    waits = best_voice_score(G711, [(20_000_000, 500), (60_000_000, 500)], 1000)
    assert waits is not None
    assert (waits.playout_ms, waits.loss_percent) == (60, 0)


def test_voice_score_includes_lost_packets() -> None:
    found = best_voice_score(G729, [(20_000_000, 900)], 1000)
    assert found is not None
    assert found.loss_percent == pytest.approx(10)
    assert found.rating == pytest.approx(93.2 - 11 - 84 * 10 / 29 - 1.4, abs=0.5)
    nothing = best_voice_score(G711, [], 10)
    assert nothing is not None
    assert (nothing.mos, nothing.loss_percent) == (pytest.approx(1.0, abs=0.3), 100)
    assert best_voice_score(G711, [], 0) is None


def test_catalogue_rates_equal_those_of_their_sources() -> None:
    # RFC 3551: 64 and 8 kb/s of payload; 12 bytes of RTP in a packet every 20 ms.
    headers = 12 * 8 / 0.02
    assert KINDS["voice"].rate_bps == 64_000 + headers
    assert KINDS["g729"].rate_bps == 8_000 + headers
    assert KINDS["video"].rate_bps == pytest.approx(1_500_000, rel=0.001)
    assert KINDS["streaming"].rate_bps == pytest.approx(4_000_000, rel=0.001)
    imix = KINDS["imix"]
    assert (len(imix.sizes) * imix.interval_s) == pytest.approx(12 * 4084 / 12 * 8 / 5_000_000)
    assert sorted({size + 28 for size in imix.sizes}) == [40, 576, 1500]


def test_kinds_have_different_names_ports_and_valid_sizes() -> None:
    names = [name for each in CATALOGUE for name in (each.name, *each.aliases)]
    assert len(set(names)) == len(names)
    assert len({(each.protocol, each.port) for each in CATALOGUE}) == len(CATALOGUE)
    for each in CATALOGUE:
        assert 0 <= each.dscp <= 63
        assert each.source
        assert bool(each.sizes) == bool(each.interval_s)
        assert each.protocol == "tcp" or each.sizes
