/* Mechanisms of Linux's TCP, one by one in place of those of ns-3: a difference of the two programs has the cause that
 * its removal shows. */
#include <cmath>
#include <set>
#include <string>

#include "ns3/internet-module.h"
#include "ns3/network-module.h"

using namespace ns3;

static std::set<std::string> likeLinux;

/* Whether the window grows as in Linux, in its present phase. */
static bool
GrowsLikeLinux(Ptr<const TcpSocketState> state)
{
    return likeLinux.count(state->m_cWnd < state->m_ssThresh ? "start" : "growth");
}

/* Grows the window in slow start, at most to its end; returns the segments that are left for congestion avoidance.
 *
 * Growth counts segments that this acknowledgement delivers. The acknowledgement that ends fast recovery, or follows a
 * timeout, has acknowledged a window, but most of it was delivered and reported by SACK before; ns-3 counts the window.
 * A reduction also forgets the segments counted before (RFC 5681 does not say). */
static uint32_t
GrowInSlowStart(Ptr<TcpSocketState> state, uint32_t acknowledged)
{
    uint32_t counted = std::min(acknowledged, state->m_lastAckedSackedBytes / state->m_segmentSize);
    if (state->m_cWnd >= state->m_ssThresh)
    {
        return counted;
    }
    uint32_t growth = std::min<uint32_t>(counted, (state->m_ssThresh - state->m_cWnd) / state->m_segmentSize);
    state->m_cWnd += growth * state->m_segmentSize;
    return counted - growth;
}

class RenoLikeLinux : public TcpLinuxReno
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id =
            TypeId("RenoLikeLinux").SetParent<TcpLinuxReno>().AddConstructor<RenoLikeLinux>();
        return id;
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acknowledged) override
    {
        if (!GrowsLikeLinux(state))
        {
            TcpLinuxReno::IncreaseWindow(state, acknowledged);
            return;
        }
        m_counted += GrowInSlowStart(state, acknowledged);
        uint32_t window = std::max<uint32_t>(state->m_cWnd / state->m_segmentSize, 1);
        state->m_cWnd += m_counted / window * state->m_segmentSize;
        m_counted %= window;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t inFlight) override
    {
        m_counted = 0;
        if (!likeLinux.count("growth"))
        {
            return TcpLinuxReno::GetSsThresh(state, inFlight);
        }
        // Whole segments.
        return std::max<uint32_t>(state->m_cWnd / state->m_segmentSize / 2, 2) * state->m_segmentSize;
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<RenoLikeLinux>(this);
    }

  private:
    uint32_t m_counted{0};
};

class CubicLikeLinux : public TcpCubic
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("CubicLikeLinux").SetParent<TcpCubic>().AddConstructor<CubicLikeLinux>();
        return id;
    }

    /* The curve of RFC 9438 in place of TcpCubic's, whose count of segments outlives a reduction. */
    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acknowledged) override
    {
        if (!GrowsLikeLinux(state))
        {
            TcpCubic::IncreaseWindow(state, acknowledged);
            return;
        }
        uint32_t counted = GrowInSlowStart(state, acknowledged);
        if (counted == 0)
        {
            return;
        }
        uint32_t window = state->m_cWnd / state->m_segmentSize;
        uint64_t tick = Simulator::Now().GetMilliSeconds() / TICK_MS;
        m_sinceEstimate += counted;
        if (window != m_window || tick - m_evaluated > 1000 / TICK_MS / 32)
        {
            if (!m_epoch || tick != m_evaluated)
            {
                m_window = window;
                m_evaluated = tick;
                FollowCurve(window, tick, counted);
            }
            FollowReno(window);
        }
        uint32_t whole = std::max<uint32_t>(m_step, 2);
        if (m_counted >= whole)
        {
            // Segments counted for a flatter curve are worth one at most.
            m_counted = 0;
            state->m_cWnd += state->m_segmentSize;
        }
        m_counted += counted;
        state->m_cWnd += m_counted / whole * state->m_segmentSize;
        m_counted %= whole;
    }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t acknowledged, const Time& roundTrip) override
    {
        m_leastRoundTrip = m_leastRoundTrip == 0 ? roundTrip.GetSeconds() : std::min(m_leastRoundTrip, roundTrip.GetSeconds());
        TcpCubic::PktsAcked(state, acknowledged, roundTrip);
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t inFlight) override
    {
        uint32_t window = state->m_cWnd / state->m_segmentSize;
        m_most = window < m_most ? window * (SCALE + BETA) / (2 * SCALE) : window;
        m_epoch = 0;
        m_counted = 0;
        uint32_t usual = TcpCubic::GetSsThresh(state, inFlight);
        return likeLinux.count("growth") ? std::max<uint32_t>(window * BETA / SCALE, 2) * state->m_segmentSize : usual;
    }

    void CongestionStateSet(Ptr<TcpSocketState> state, const TcpSocketState::TcpCongState_t now) override
    {
        TcpCubic::CongestionStateSet(state, now);
        if (now == TcpSocketState::CA_LOSS)
        {
            m_most = m_epoch = m_leastRoundTrip = 0;
        }
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<CubicLikeLinux>(this);
    }

  private:
    /* Units of the factor of a reduction, the factor, and the tick of user-mode Linux. */
    static constexpr uint32_t SCALE = 1024, BETA = 717, TICK_MS = 10;

    /* Step to the curve of an epoch. Linux rounds the distance from its turning point down to whole segments, and time
     * to ticks; ns-3 rounds the curve itself. */
    void FollowCurve(uint32_t window, uint64_t tick, uint32_t counted)
    {
        if (!m_epoch)
        {
            m_epoch = tick;
            m_sinceEstimate = counted;
            m_estimate = window;
            m_origin = std::max(m_most, window);
            m_turn_s = std::cbrt((m_origin - window) / 0.4);
        }
        double roundTrip = std::ceil(m_leastRoundTrip * 1000 / TICK_MS);
        double time = (tick - m_epoch + roundTrip) * TICK_MS / 1000 - m_turn_s;
        double distance = 0.4 * time * time * time;
        distance = likeLinux.count("curve") ? std::trunc(distance) : std::floor(distance);
        uint32_t target = std::max(m_origin + distance, 0.0);
        m_step = target > window ? window / (target - window) : 100 * window;
        if (m_most == 0)
        {
            m_step = std::min<uint32_t>(m_step, 20);
        }
    }

    /* A step that keeps up with Reno's window. */
    void FollowReno(uint32_t window)
    {
        if (!likeLinux.count("friendly"))
        {
            return;
        }
        uint32_t growth = window * (8 * (SCALE + BETA) / 3 / (SCALE - BETA)) / 8;
        for (; m_sinceEstimate > growth; m_sinceEstimate -= growth)
        {
            m_estimate++;
        }
        if (m_estimate > window)
        {
            m_step = std::min(m_step, window / (m_estimate - window));
        }
    }

    double m_leastRoundTrip{0}, m_turn_s{0};
    uint64_t m_epoch{0}, m_evaluated{0};
    uint32_t m_counted{0}, m_most{0}, m_origin{0}, m_estimate{0}, m_sinceEstimate{0}, m_step{0}, m_window{0};
};

class RecoveryLikeLinux : public TcpPrrRecovery
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id =
            TypeId("RecoveryLikeLinux").SetParent<TcpPrrRecovery>().AddConstructor<RecoveryLikeLinux>();
        return id;
    }

    /* Proportional rate reduction (RFC 9937) in whole segments, and in proportion to the window as in Linux. ns-3 takes
     * the data from the first lost byte, which has more segments than the window after limited transmit, and counts an
     * acknowledgement twice that both advances and has a SACK. */
    void EnterRecovery(Ptr<TcpSocketState> state, uint32_t duplicates, uint32_t out, uint32_t delivered) override
    {
        m_prior = state->m_cWnd / state->m_segmentSize;
        m_delivered = m_sent = 0;
        TcpPrrRecovery::EnterRecovery(state, duplicates, out, delivered);
    }

    void DoRecovery(Ptr<TcpSocketState> state, uint32_t bytes) override
    {
        if (!likeLinux.count("reduction"))
        {
            TcpPrrRecovery::DoRecovery(state, bytes);
            return;
        }
        int delivered = m_counted ? 0 : bytes / state->m_segmentSize;
        int pipe = state->m_bytesInFlight / state->m_segmentSize, least = state->m_ssThresh / state->m_segmentSize;
        m_counted = true;
        m_delivered += delivered;
        int due = pipe > least ? (least * m_delivered + m_prior - 1) / m_prior - m_sent
                               : std::min(std::max(m_delivered - m_sent, delivered) + m_advanced, least - pipe);
        state->m_cWnd = (pipe + std::max(due, int(m_sent == 0))) * state->m_segmentSize;
        state->m_cWndInfl = state->m_cWnd;
    }

    void UpdateBytesSent(uint32_t bytes) override
    {
        TcpPrrRecovery::UpdateBytesSent(bytes);
        m_sent += (bytes + 1447) / 1448;
    }

    /* An acknowledgement arrived. */
    void Next(bool advanced)
    {
        m_advanced = advanced;
        m_counted = false;
    }

    Ptr<TcpRecoveryOps> Fork() override
    {
        return CopyObject<RecoveryLikeLinux>(this);
    }

  private:
    int m_prior{1}, m_delivered{0}, m_sent{0};
    bool m_advanced{false}, m_counted{false};
};

class SocketLikeLinux : public TcpSocketBase
{
  protected:
    void ProcessAck(const SequenceNumber32& acknowledged, bool sacked, uint32_t delivered,
                    const SequenceNumber32& head) override
    {
        DynamicCast<RecoveryLikeLinux>(m_recoveryOps)->Next(acknowledged > head);
        bool recovered = m_tcb->m_congState == TcpSocketState::CA_RECOVERY;
        TcpSocketBase::ProcessAck(acknowledged, sacked, delivered, head);
        if (likeLinux.count("timer") && m_tcb->m_congState == TcpSocketState::CA_RECOVERY)
        {
            RestartTimer(!recovered || acknowledged > head, delivered);
        }
        // The window grows with each acknowledgement that advances (RFC 5681), also with the one that brings the first
        // SACK; ns-3 grows it only in the open state.
        if (likeLinux.count("disorder") && acknowledged > head &&
            m_tcb->m_congState == TcpSocketState::CA_DISORDER)
        {
            m_congestionControl->IncreaseWindow(m_tcb, delivered / m_tcb->m_segmentSize);
        }
    }

  private:
    /* Restarts the retransmission timer in recovery: with a retransmission of the first segment, and with each SACK of
     * segments that were sent before it (RFC 6298 only asks for the acknowledgements that advance). In ns-3 the time
     * for a retransmission is what its loss and the wait for three duplicates left. */
    void RestartTimer(bool retransmitted, uint32_t delivered)
    {
        m_sentBefore = retransmitted ? BytesInFlight() - m_tcb->m_segmentSize : m_sentBefore - int(delivered);
        if (retransmitted || (delivered > 0 && m_sentBefore >= 0))
        {
            m_retxEvent.Cancel();
            m_retxEvent = Simulator::Schedule(m_rto, &SocketLikeLinux::ReTxTimeout, this);
        }
    }

    int m_sentBefore{0};
};

class FactoryLikeLinux : public SocketFactory
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("FactoryLikeLinux").SetParent<SocketFactory>().AddConstructor<FactoryLikeLinux>();
        return id;
    }

    Ptr<Socket> CreateSocket() override
    {
        Ptr<Node> node = GetObject<Node>();
        Ptr<TcpL4Protocol> protocol = node->GetObject<TcpL4Protocol>();
        Ptr<SocketLikeLinux> socket = CreateObject<SocketLikeLinux>();
        socket->SetNode(node);
        socket->SetTcp(protocol);
        socket->SetRtt(CreateObject<RttMeanDeviation>());
        bool cubic = m_control == "TcpCubic";
        socket->SetCongestionControlAlgorithm(cubic ? Ptr<TcpCongestionOps>(CreateObject<CubicLikeLinux>())
                                                    : Ptr<TcpCongestionOps>(CreateObject<RenoLikeLinux>()));
        socket->SetRecoveryAlgorithm(CreateObject<RecoveryLikeLinux>());
        protocol->AddSocket(socket);
        return socket;
    }

    std::string m_control;
};
