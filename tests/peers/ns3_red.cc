/* Random early detection of ns-3 on given packets, ahead of a line with a ring.
 *
 * ns3_red RATE LIMIT RING MIN MAX DENOMINATOR WEIGHT SEED PACKETS writes the time at which the last bit of each packet has
 * left the line (u64, ns; 0: dropped) to standard output. PACKETS has the packets in the order of their times: time (u64,
 * ns), bytes on the line (u32) and an unused number (u32), little-endian. LIMIT packets wait in the queue at most, RING
 * further ones wait behind the packet on the line. The drop probability is one in DENOMINATOR at a mean of MAX packets;
 * a packet counts WEIGHT in the mean. Packets between two drops are counted (Floyd and Jacobson, 1993).
 */
#include <deque>
#include <fstream>
#include <iostream>

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

struct Given
{
    uint64_t time;
    uint32_t bytes, number;
};

class Item : public QueueDiscItem
{
  public:
    Item(uint32_t bytes, size_t number)
        : QueueDiscItem(Create<Packet>(bytes), Address(), 0),
          m_number(number)
    {
    }

    void AddHeader() override
    {
    }

    bool Mark() override
    {
        return false;
    }

    size_t m_number;
};

static std::vector<Given> packets;
static std::vector<uint64_t> times;
static std::deque<size_t> ring;
static size_t ringLimit;
static uint64_t rate;
static Ptr<RedQueueDisc> queue;

static void Fill();

static void
Sent()
{
    times[ring.front()] = Simulator::Now().GetNanoSeconds();
    ring.pop_front();
    Fill();
    if (!ring.empty())
    {
        uint64_t bits = 8ULL * packets[ring.front()].bytes;
        Simulator::Schedule(NanoSeconds((bits * 1000000000ULL + rate - 1) / rate), &Sent);
    }
}

/* The first packet of the ring is on the line. */
static void
Fill()
{
    while (ring.size() < ringLimit + 1)
    {
        Ptr<QueueDiscItem> item = queue->Dequeue();
        if (!item)
        {
            return;
        }
        ring.push_back(DynamicCast<Item>(item)->m_number);
    }
}

static void
Arrive(size_t number)
{
    bool idle = ring.empty();
    queue->Enqueue(Create<Item>(packets[number].bytes, number));
    Fill();
    if (idle && !ring.empty())
    {
        uint64_t bits = 8ULL * packets[ring.front()].bytes;
        Simulator::Schedule(NanoSeconds((bits * 1000000000ULL + rate - 1) / rate), &Sent);
    }
    if (number + 1 < packets.size())
    {
        Simulator::Schedule(NanoSeconds(packets[number + 1].time - packets[number].time), &Arrive, number + 1);
    }
}

int
main(int argc, char** argv)
{
    if (argc != 10)
    {
        std::cerr << "usage: ns3_red RATE LIMIT RING MIN MAX DENOMINATOR WEIGHT SEED PACKETS" << std::endl;
        return 1;
    }
    std::ifstream file(argv[9], std::ios::binary);
    for (Given given; file.read(reinterpret_cast<char*>(&given), sizeof given);)
    {
        packets.push_back(given);
    }
    times.resize(packets.size());
    rate = std::stoull(argv[1]);
    ringLimit = std::stoul(argv[3]);
    Time::SetResolution(Time::NS);
    RngSeedManager::SetRun(std::stoull(argv[8]));
    queue = CreateObject<RedQueueDisc>();
    queue->SetMaxSize(QueueSize(std::string(argv[2]) + "p"));
    queue->SetAttribute("MinTh", DoubleValue(std::stod(argv[4])));
    queue->SetAttribute("MaxTh", DoubleValue(std::stod(argv[5])));
    queue->SetAttribute("LInterm", DoubleValue(std::stod(argv[6])));
    queue->SetAttribute("QW", DoubleValue(std::stod(argv[7])));
    queue->SetAttribute("Gentle", BooleanValue(false));
    queue->SetAttribute("Wait", BooleanValue(false));
    queue->SetAttribute("MeanPktSize", UintegerValue(1000));
    queue->SetAttribute("LinkBandwidth", DataRateValue(DataRate(rate)));
    queue->Initialize();
    Simulator::Schedule(NanoSeconds(packets.at(0).time), &Arrive, size_t(0));
    Simulator::Run();
    Simulator::Destroy();
    queue = nullptr;
    std::cout.write(reinterpret_cast<const char*>(times.data()), times.size() * sizeof times[0]);
    return 0;
}
