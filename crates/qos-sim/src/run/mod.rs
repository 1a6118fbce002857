//! The event loop of the simulation.

mod agents;
mod connections;
mod datagrams;
mod engines;
mod explain;
mod host_interface;
mod hosts;
mod messages;
mod routes;
mod tally;
mod transit;
mod world;

pub(crate) use world::World;

use std::io::{self, Write};

use qos_core::{Duration, Output, Time};

use crate::capture::Recorders;
use crate::event_queue::Event;
use crate::packet::{PacketId, Way};
use crate::samples::Samples;
use crate::tcp::Segment;

/// A run.
pub(crate) struct Run<'a, W: Write> {
    world: World,
    recorders: Recorders<W>,
    samples: &'a mut dyn Samples,
    /// The traffic has ended.
    draining: bool,
    /// Latest outputs of an engine and a connection, stored to reuse their memory.
    outputs: Vec<Output<PacketId>>,
    segments: Vec<Segment>,
    /// The packet of a question; without one, a number that no packet has.
    traced: PacketId,
    asking: Option<Box<explain::Asking>>,
}

impl<'a, W: Write> Run<'a, W> {
    pub fn new(world: World, recorders: Recorders<W>, samples: &'a mut dyn Samples) -> Run<'a, W> {
        Run {
            world,
            recorders,
            samples,
            draining: false,
            outputs: Vec::new(),
            segments: Vec::new(),
            traced: PacketId::MAX,
            asking: None,
        }
    }

    /// Processes events until the run ends; returns the final network and time.
    pub fn run(mut self) -> io::Result<(World, Time)> {
        let end = self.advance_to()?;
        self.recorders.finish()?;
        Ok((self.world, end))
    }

    fn advance_to(&mut self) -> io::Result<Time> {
        let mut end = self.world.begin();
        while let Some((now, event)) = self.world.events.take() {
            end = now;
            self.handle_event(now, event)?;
            if event == Event::End || (self.draining && self.world.is_idle()) {
                break;
            }
        }
        self.sample(end)?;
        Ok(end)
    }

    fn handle_event(&mut self, now: Time, event: Event) -> io::Result<()> {
        match event {
            Event::Engine(station) => self.engine_due(station as usize, now)?,
            Event::Datagram(source) => self.datagram_due(source as usize, now)?,
            Event::Connect(transfer) => {
                self.with_transfer(transfer as usize, Way::Forward, now, |transfer, out| transfer.connect(now, out))?;
            }
            Event::Write(transfer) => self.write_due(transfer as usize, now)?,
            Event::Stop(transfer) => {
                self.with_transfer(transfer as usize, Way::Forward, now, |transfer, out| transfer.stop(now, out))?;
            }
            Event::Timer(end) => {
                let (transfer, end) = ((end / 2) as usize, (end % 2) as usize);
                self.with_transfer(transfer, [Way::Forward, Way::Backward][end], now, |transfer, out| {
                    transfer.timer(end, now, out);
                })?;
            }
            Event::Note(transfer) => self.note(transfer as usize, now),
            Event::Received(stream) => self.world.traffic.complete(stream as usize),
            Event::GiveUp(stream) => self.world.traffic.give_up(stream as usize),
            Event::Agent(node) => self.agent_due(node as usize, now)?,
            Event::Leave(packet) => self.leave(now, packet)?,
            Event::Taken(packet) => self.taken(now, packet)?,
            Event::ProbeBegins(probe) => self.probe_begins(probe as usize, now),
            Event::ProbeRead(probe) => self.world.agents.read_probe(probe as usize, now),
            Event::Sample => {
                self.world.events.put(now + Duration(self.world.sample_ns), Event::Sample);
                self.sample(now)?;
            }
            Event::Look => self.sample(now)?,
            Event::Question => self.ask(now)?,
            Event::Drain => self.draining = true,
            Event::End => {}
        }
        Ok(())
    }
}
