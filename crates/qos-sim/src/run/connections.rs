//! TCP streams in the run: the events at their ends, and their times.

use std::io::{self, Write};

use qos_core::{Duration, Time};

use super::Run;
use crate::event_queue::Event;
use crate::packet::{Content, Way};
use crate::tcp::Segment;
use crate::traffic::tcp::{sender, Transfer};

impl<W: Write> Run<'_, W> {
    /// Handles an event of a TCP stream at the end that sends in a direction, sends the resulting segments and updates
    /// its timer.
    pub(super) fn with_transfer(
        &mut self,
        number: usize,
        way: Way,
        now: Time,
        act: impl FnOnce(&mut Transfer, &mut Vec<Segment>),
    ) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.segments);
        let transfer = &mut self.world.traffic.transfers[number];
        act(transfer, &mut out);
        let (stream, end) = (transfer.stream, sender(way));
        for segment in &out {
            let traffic = &mut self.world.traffic;
            traffic.transfers[number].leaves(way, segment);
            let content = Content::Tcp { transfer: number as u32, segment: *segment };
            let packet = traffic.streams[stream].ways[end].packet(stream, way, segment.ecn, content);
            let leaves = self.send(now, packet)?;
            self.world.traffic.transfers[number].leaves_queue(end, segment, leaves);
        }
        out.clear();
        self.segments = out;
        if let Some(due) = self.world.traffic.transfers[number].reschedule(end) {
            self.world.events.put(due, Event::Timer((number * 2 + end) as u32));
        }
        Ok(())
    }

    pub(super) fn segment_arrives(&mut self, now: Time, number: usize, way: Way, segment: &Segment) -> io::Result<()> {
        // Results of the stream go in the other direction.
        self.with_transfer(number, way.back(), now, |transfer, out| transfer.arrives(now, way, segment, out))?;
        let transfer = &mut self.world.traffic.transfers[number];
        let stream = &mut self.world.traffic.streams[transfer.stream];
        let flow = &self.world.traffic.flows[stream.flow];
        // The stream has a separate time, unless it lasts as long as the others.
        let duration_ns = flow.duration_ns - stream.offset.0;
        let over = if flow.background { self.world.traffic.end } else { now + Duration(duration_ns) };
        match way {
            Way::Forward => {
                if transfer.is_newly_established(1, now) && !flow.background {
                    self.world.events.put(over, Event::Received(transfer.stream as u32));
                }
                if let Some((sent, _)) = segment.timestamps.filter(|_| segment.len > 0) {
                    stream.delays.record(now.since(Time(sent)).0);
                }
                let bytes = transfer.take_received(now);
                if let Some(elapsed) = transfer.receiving(now) {
                    let counts = if flow.background { now < over } else { elapsed.0 < duration_ns };
                    if bytes > 0 && counts {
                        transfer.counted += bytes;
                        stream.arrivals.add(elapsed, bytes);
                    }
                }
                Ok(())
            }
            Way::Backward => {
                if !transfer.is_newly_established(0, now) {
                    return Ok(());
                }
                let (interval, duration) = (flow.interval_ns, over.since(now).0);
                self.world.events.put(over, Event::Stop(number as u32));
                self.world.events.put(now + Duration(interval), Event::Note(number as u32));
                let mut next = None;
                self.with_transfer(number, Way::Forward, now, |transfer, out| {
                    next = transfer.begin(now, duration, out)
                })?;
                self.write_at(number, next);
                Ok(())
            }
        }
    }

    pub(super) fn write_due(&mut self, number: usize, now: Time) -> io::Result<()> {
        let mut next = None;
        self.with_transfer(number, Way::Forward, now, |transfer, out| next = transfer.write(now, out))?;
        self.write_at(number, next);
        Ok(())
    }

    fn write_at(&mut self, number: usize, next: Option<Time>) {
        if let Some(next) = next {
            self.world.events.put(next, Event::Write(number as u32));
        }
    }

    /// Records the statistics of a TCP sender, at the end of each of its intervals.
    pub(super) fn note(&mut self, number: usize, now: Time) {
        let transfer = &mut self.world.traffic.transfers[number];
        let flow = &self.world.traffic.flows[self.world.traffic.streams[transfer.stream].flow];
        if transfer.is_stopped() {
            return;
        }
        transfer.sample_round_trip();
        self.world.events.put(now + Duration(flow.interval_ns), Event::Note(number as u32));
    }
}
