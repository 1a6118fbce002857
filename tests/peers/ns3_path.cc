/* A path in ns-3: client, fast line, router, slow line, server; prints one JSON object.
 *
 * The slow line has one queue of the router's network device, without traffic control ahead of it: first in, first out
 * with a limit of packets, or random early detection.
 */
#include <deque>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include "ns3_like_linux.h"

struct Counts
{
    uint64_t received, offered, dropped, waited, recoveries, timeouts;
    double wait_s;
};

static Counts counts;
static std::deque<double> waiting;

static void
Receive(Ptr<const Packet> packet, const Address&)
{
    counts.received += packet->GetSize();
}

static void
Enqueue(Ptr<const Packet>)
{
    counts.offered++;
    waiting.push_back(Simulator::Now().GetSeconds());
}

static void
Drop(Ptr<const Packet>)
{
    counts.offered++;
    counts.dropped++;
}

static void
Dequeue(Ptr<const Packet>)
{
    counts.waited++;
    counts.wait_s += Simulator::Now().GetSeconds() - waiting.front();
    waiting.pop_front();
}

static void
ChangeState(TcpSocketState::TcpCongState_t before, TcpSocketState::TcpCongState_t now)
{
    counts.recoveries += now == TcpSocketState::CA_RECOVERY && before != now;
    counts.timeouts += now == TcpSocketState::CA_LOSS && before != now;
}

/* A line on which the packets that one end sends have random delays, like those of a busy host. Their order stays. */
class LineWithDelays : public PointToPointChannel
{
  public:
    LineWithDelays(uint32_t sender, uint64_t longest) : m_sender(sender), m_longest(longest) {}

    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> source, Time time) override
    {
        if (m_longest > 0 && source == GetPointToPointDevice(m_sender))
        {
            Time delayed = Simulator::Now() + time + NanoSeconds(m_random->GetValue(0, m_longest));
            m_last = std::max(m_last, delayed);
            time = m_last - Simulator::Now();
        }
        return PointToPointChannel::TransmitStart(packet, source, time);
    }

  private:
    uint32_t m_sender;
    uint64_t m_longest;
    Time m_last;
    Ptr<UniformRandomVariable> m_random = CreateObject<UniformRandomVariable>();
};

static NetDeviceContainer
Join(Ptr<Node> first, Ptr<Node> second, Ptr<PointToPointChannel> line, uint64_t rate, uint64_t delay, uint32_t packets)
{
    NetDeviceContainer devices;
    line->SetAttribute("Delay", TimeValue(NanoSeconds(delay)));
    for (Ptr<Node> node : {first, second})
    {
        Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
        device->SetAddress(Mac48Address::Allocate());
        device->SetDataRate(DataRate(rate));
        node->AddDevice(device);
        Ptr<DropTailQueue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
        queue->SetMaxSize(QueueSize(PACKETS, packets));
        device->SetQueue(queue);
        device->Attach(line);
        devices.Add(device);
    }
    return devices;
}

int
main(int argc, char** argv)
{
    uint64_t rate = 4000000, delay = 20000000, hostDelay = 0;
    uint32_t packets = 40, connections = 1, seed = 1;
    double seconds = 60, warmUp = 10, leastTimeout = 0.2, startSpread = 5;
    std::string control = "TcpLinuxReno", like;
    CommandLine arguments;
    arguments.AddValue("rate", "bits per second of the slow line", rate);
    arguments.AddValue("delay", "its delay, ns", delay);
    arguments.AddValue("hostDelay", "longest random delay of the packets of a host, ns", hostDelay);
    arguments.AddValue("packets", "limit of its queue", packets);
    arguments.AddValue("control", "congestion control", control);
    arguments.AddValue("connections", "number of connections", connections);
    arguments.AddValue("seconds", "how long they send", seconds);
    arguments.AddValue("warmUp", "seconds that are not counted", warmUp);
    arguments.AddValue("leastTimeout", "least retransmission timeout, s", leastTimeout);
    arguments.AddValue("startSpread", "seconds within which connections start", startSpread);
    arguments.AddValue("seed", "number of the run", seed);
    arguments.AddValue("like", "mechanisms as in Linux, separated by commas", like);
    arguments.Parse(argc, argv);

    std::stringstream names(like);
    for (std::string name; std::getline(names, name, ',');)
    {
        likeLinux.insert(name);
    }
    Time::SetResolution(Time::NS);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + control)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4194304));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4194304));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(leastTimeout)));

    NodeContainer nodes;
    nodes.Create(3);
    InternetStackHelper stack;
    stack.Install(nodes);
    Ptr<LineWithDelays> fast = CreateObject<LineWithDelays>(0, hostDelay), slow = CreateObject<LineWithDelays>(1, hostDelay);
    NetDeviceContainer first = Join(nodes.Get(0), nodes.Get(1), fast, 1000000000, 0, 1000);
    NetDeviceContainer second = Join(nodes.Get(1), nodes.Get(2), slow, rate, delay, packets);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.1.0", "255.255.255.0");
    addresses.Assign(first);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    Ipv4InterfaceContainer ends = addresses.Assign(second);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    InetSocketAddress server(ends.GetAddress(1), 5201);
    PacketSinkHelper sink("ns3::TcpSocketFactory", server);
    ApplicationContainer sinks = sink.Install(nodes.Get(2));
    sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Receive));
    Ptr<FactoryLikeLinux> factory = CreateObject<FactoryLikeLinux>();
    factory->m_control = control;
    nodes.Get(0)->AggregateObject(factory);
    Ptr<UniformRandomVariable> late = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < connections; i++)
    {
        BulkSendHelper sender("FactoryLikeLinux", server);
        sender.SetAttribute("SendSize", UintegerValue(1448));
        ApplicationContainer senders = sender.Install(nodes.Get(0));
        Time start = Seconds(late->GetValue(0, startSpread));
        senders.Start(start);
        senders.Stop(Seconds(seconds));
        Ptr<BulkSendApplication> application = DynamicCast<BulkSendApplication>(senders.Get(0));
        Simulator::Schedule(start + Seconds(0.01), [application] {
            application->GetSocket()->TraceConnectWithoutContext("CongState", MakeCallback(&ChangeState));
        });
    }

    Ptr<Queue<Packet>> queue = DynamicCast<PointToPointNetDevice>(second.Get(0))->GetQueue();
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Enqueue));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Drop));
    queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Dequeue));
    Counts begin{};
    Simulator::Schedule(Seconds(warmUp), [&] { begin = counts; });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    Simulator::Destroy();
    TypeId::AttributeInformation friendliness;
    bool friendly = TypeId::LookupByName("ns3::TcpCubic").LookupAttributeByName("TcpFriendliness", &friendliness);
    std::cout << "{\"reno_friendly\": " << friendly << ", \"goodput_bps\": " << 8.0 * (counts.received - begin.received) / (seconds - warmUp)
              << ", \"loss\": " << double(counts.dropped - begin.dropped) / (counts.offered - begin.offered)
              << ", \"delay_s\": " << (counts.wait_s - begin.wait_s) / (counts.waited - begin.waited) 
              << ", \"dropped\": " << counts.dropped - begin.dropped << ", \"recoveries\": " << counts.recoveries - begin.recoveries
              << ", \"timeouts\": " << counts.timeouts - begin.timeouts << "}" << std::endl;
    return 0;
}
