/* Mechanisms of Linux's TCP, one by one in place of those of ns-3: a difference of the two programs has the cause that
 * its removal shows. */
#include <cmath>
#include <set>
#include <string>

#include "ns3/internet-module.h"
#include "ns3/network-module.h"

using namespace ns3;

static std::set<std::string> likeLinux;

/* Growth of the window counts segments that this acknowledgement delivers. The acknowledgement that ends fast recovery
 * has acknowledged a window, but most of it was delivered and reported by SACK before; ns-3 counts the window. A
 * reduction also forgets the segments counted before (RFC 5681 does not say). */
static uint32_t
Counted(Ptr<TcpSocketState> state, uint32_t acknowledged)
{
    uint32_t delivered = state->m_lastAckedSackedBytes / state->m_segmentSize;
    return likeLinux.count("growth") && state->m_cWnd >= state->m_ssThresh ? std::min(acknowledged, delivered)
                                                                            : acknowledged;
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
        if (!likeLinux.count("growth") || state->m_cWnd < state->m_ssThresh)
        {
            TcpLinuxReno::IncreaseWindow(state, acknowledged);
            return;
        }
        uint32_t window = std::max<uint32_t>(state->m_cWnd / state->m_segmentSize, 1);
        m_counted += Counted(state, acknowledged);
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
        if (!likeLinux.count("growth") || state->m_cWnd < state->m_ssThresh)
        {
            TcpCubic::IncreaseWindow(state, acknowledged);
            return;
        }
        double window = state->m_cWnd / state->m_segmentSize, now = Simulator::Now().GetSeconds();
        uint32_t counted = Counted(state, acknowledged);
        if (m_epoch == 0)
        {
            m_epoch = now;
            m_estimate = window;
        }
        double time = now + m_leastRoundTrip - m_epoch - std::cbrt(std::max(0.0, m_most - window_at_start(window)) / 0.4);
        double target = std::floor(std::max(m_most, m_start) + 0.4 * time * time * time);
        double step = target > window ? window / (target - window) : 100 * window;
        m_estimate += 3 * (1 - 0.7) / (1 + 0.7) * counted / window;
        if (likeLinux.count("friendly") && std::floor(m_estimate) > window)
        {
            step = std::min(step, window / (std::floor(m_estimate) - window));
        }
        uint32_t whole = std::max(step, 2.0);
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
        double window = state->m_cWnd / state->m_segmentSize;
        m_most = window < m_most ? std::floor(window * (1 + 0.7) / 2) : window;
        m_epoch = m_start = 0;
        m_counted = 0;
        return TcpCubic::GetSsThresh(state, inFlight);
    }

    void CongestionStateSet(Ptr<TcpSocketState> state, const TcpSocketState::TcpCongState_t now) override
    {
        TcpCubic::CongestionStateSet(state, now);
        if (now == TcpSocketState::CA_LOSS)
        {
            m_most = m_epoch = m_start = m_leastRoundTrip = 0;
        }
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<CubicLikeLinux>(this);
    }

  private:
    double window_at_start(double window)
    {
        return m_start = m_start == 0 ? window : m_start;
    }

    double m_epoch{0}, m_start{0}, m_most{0}, m_estimate{0}, m_leastRoundTrip{0};
    uint32_t m_counted{0};
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
    /* Each acknowledgement that advances restarts the timer (RFC 6298, rule 5.3), not only the first of a recovery. */
    void NewAck(const SequenceNumber32& acknowledged, bool restarts) override
    {
        TcpSocketBase::NewAck(acknowledged, restarts || likeLinux.count("timer"));
    }

    /* Retransmissions in fast recovery, too, wait for room in the window; ns-3 sends one at each partial
     * acknowledgement. */
    uint32_t SendDataPacket(SequenceNumber32 sequence, uint32_t size, bool acknowledges) override
    {
        bool recovering = m_tcb->m_congState == TcpSocketState::CA_RECOVERY;
        if (likeLinux.count("partial") && recovering && m_partial && AvailableWindow() < m_tcb->m_segmentSize)
        {
            return 0;
        }
        return TcpSocketBase::SendDataPacket(sequence, size, acknowledges);
    }

    void ProcessAck(const SequenceNumber32& acknowledged, bool sacked, uint32_t delivered,
                    const SequenceNumber32& head) override
    {
        m_partial = m_tcb->m_congState == TcpSocketState::CA_RECOVERY;
        DynamicCast<RecoveryLikeLinux>(m_recoveryOps)->Next(acknowledged > head);
        TcpSocketBase::ProcessAck(acknowledged, sacked, delivered, head);
        m_partial = false;
        // The window grows with each acknowledgement that advances (RFC 5681), also with the one that brings the first
        // SACK; ns-3 grows it only in the open state.
        if (likeLinux.count("disorder") && acknowledged > head &&
            m_tcb->m_congState == TcpSocketState::CA_DISORDER)
        {
            m_congestionControl->IncreaseWindow(m_tcb, delivered / m_tcb->m_segmentSize);
        }
    }

  private:
    bool m_partial{false};
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
