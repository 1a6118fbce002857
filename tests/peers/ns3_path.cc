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

int
main(int argc, char** argv)
{
    uint64_t rate = 4000000, delay = 20000000;
    uint32_t packets = 40, connections = 1, seed = 1;
    double seconds = 60, warmUp = 10, leastTimeout = 0.2, startSpread = 5;
    std::string control = "TcpLinuxReno", like;
    CommandLine arguments;
    arguments.AddValue("rate", "bits per second of the slow line", rate);
    arguments.AddValue("delay", "its delay, ns", delay);
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
    PointToPointHelper fast, slow;
    // Otherwise the layer above drops what a full queue would.
    slow.DisableFlowControl();
    fast.SetDeviceAttribute("DataRate", DataRateValue(DataRate(1000000000)));
    fast.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    slow.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    slow.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    slow.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(packets) + "p"));
    NetDeviceContainer first = fast.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer second = slow.Install(nodes.Get(1), nodes.Get(2));
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.1.0", "255.255.255.0");
    addresses.Assign(first);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    Ipv4InterfaceContainer ends = addresses.Assign(second);
    TrafficControlHelper control_;
    control_.Uninstall(first);
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
