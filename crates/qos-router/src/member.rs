//! A router of the process: its data plane, its control socket, and its end.

use std::path::PathBuf;

use crate::control::Control;
use crate::requests::Service;

/// A router of this process.
pub struct Member {
    /// Handler of requests, with the data plane.
    pub service: Service,
    /// Control socket; none after a request to stop.
    pub control: Option<Control>,
    /// File in which the end is described.
    ended: Option<PathBuf>,
}

impl Member {
    /// Creates a running router.
    pub fn new(service: Service, control: Option<Control>, ended: Option<PathBuf>) -> Self {
        Self { service, control, ended }
    }

    /// Returns whether the router has neither failed nor been asked to stop.
    pub fn is_running(&self) -> bool {
        self.service.failure.is_none() && !self.service.stopping
    }

    /// Marks the router as failed; it reports the reason from now on.
    pub fn fail(&mut self, why: &str) {
        let failure = format!("the data plane of {} failed: {why}", self.service.name);
        eprintln!("qos-router: {failure}");
        self.tell(&failure);
        self.service.failure = Some(failure);
    }

    /// Ends the router on request: closes its ports and removes its control socket.
    pub fn end(&mut self) {
        self.tell("it was asked to stop");
        self.service.plane.close();
        self.control = None;
    }

    /// Writes the description of its end, for observers.
    fn tell(&self, what: &str) {
        let Some(path) = &self.ended else { return };
        if let Err(error) = std::fs::write(path, format!("{what}\n")) {
            eprintln!("qos-router: cannot write {}: {error}", path.display());
        }
    }
}
