/* Departures of given packets from a network device of ns-3, first in, first out.
 *
 * ns3_queue RATE LIMIT PACKETS writes the time at which the last bit of each packet has arrived at the other end of a line
 * without delay (u64, ns; 0: dropped) to standard output. PACKETS has the packets in the order of their times: time (u64,
 * ns), bytes on the line (u32) and an unused number (u32), little-endian. LIMIT packets wait at most.
 */
#include <fstream>
#include <iostream>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

struct Given
{
    uint64_t time;
    uint32_t bytes, number;
};

static const uint32_t PPP_HEADER = 2;
static std::vector<Given> packets;
static std::vector<uint64_t> times;
static std::vector<size_t> queued;
static size_t arrived;

/* Packets arrive in the order in which the queue took them. */
static bool
Arrive(Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&)
{
    times[queued[arrived++]] = Simulator::Now().GetNanoSeconds();
    return true;
}

static void
Send(Ptr<NetDevice> device, size_t number)
{
    Ptr<Packet> packet = Create<Packet>(packets[number].bytes - PPP_HEADER);
    if (device->Send(packet, device->GetBroadcast(), 0x0800))
    {
        queued.push_back(number);
    }
    if (number + 1 < packets.size())
    {
        Time gap = NanoSeconds(packets[number + 1].time - packets[number].time);
        Simulator::Schedule(gap, &Send, device, number + 1);
    }
}

int
main(int argc, char** argv)
{
    if (argc != 4)
    {
        std::cerr << "usage: ns3_queue RATE LIMIT PACKETS" << std::endl;
        return 1;
    }
    std::ifstream file(argv[3], std::ios::binary);
    for (Given given; file.read(reinterpret_cast<char*>(&given), sizeof given);)
    {
        packets.push_back(given);
    }
    times.resize(packets.size());
    Time::SetResolution(Time::NS);
    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper line;
    line.SetDeviceAttribute("DataRate", DataRateValue(DataRate(std::stoull(argv[1]))));
    line.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::string(argv[2]) + "p"));
    NetDeviceContainer devices = line.Install(nodes);
    devices.Get(1)->SetReceiveCallback(MakeCallback(&Arrive));
    Simulator::Schedule(NanoSeconds(packets.at(0).time), &Send, devices.Get(0), size_t(0));
    Simulator::Run();
    Simulator::Destroy();
    std::cout.write(reinterpret_cast<const char*>(times.data()), times.size() * sizeof times[0]);
    return 0;
}
