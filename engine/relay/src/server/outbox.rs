//! What waits to be written to one socket: control frames first, data in its order, bounded in both
//! number and bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use trillium_http::Stopper;

use super::lock;
use super::signal::Signal;

/// A frame that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// A text made for this connection alone.
    Text(String),
    /// An event of a subscription; its JSON is shared by all that get it.
    Event {
        /// `["EVENT","<sub>",`
        head: Arc<str>,
        /// The event.
        json: Arc<str>,
    },
    /// A ping.
    Ping,
    /// The end: its code and reason. Nothing is written after it.
    Close(u16, &'static str),
}

impl Outgoing {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Event { head, json } => head.len() + json.len() + 1,
            Self::Ping | Self::Close(..) => 0,
        }
    }
}

/// The bounds of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) frames: usize,
    pub(crate) bytes: usize,
    pub(crate) full_hits: u32,
}

#[derive(Default)]
struct Line {
    control: VecDeque<Outgoing>,
    data: VecDeque<Outgoing>,
    bytes: usize,
    full_hits: u32,
    is_closing: bool,
}

/// The line of one connection. Any thread puts in, one task takes out, one task waits for room.
pub(crate) struct Outbox {
    bounds: Bounds,
    line: Mutex<Line>,
    ready: Signal,
    room: Signal,
    kill: Stopper,
}

impl Outbox {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let (ready, room) = (Signal::new(), Signal::new());
        Self { bounds, line: Mutex::default(), ready, room, kill: Stopper::new() }
    }

    fn is_full(&self, line: &Line) -> bool {
        line.data.len() >= self.bounds.frames || line.bytes >= self.bounds.bytes
    }

    /// Puts in a frame that the client has asked for. Not bounded here: whoever reads the client's frames
    /// waits for [`Self::room`] first.
    pub(crate) fn answer(&self, frame: Outgoing) {
        let mut line = lock(&self.line);
        if !line.is_closing {
            line.bytes += frame.bytes();
            line.data.push_back(frame);
        }
        drop(line);
        self.ready.give();
    }

    /// Puts in a live event, or drops it if the line is full. Too many drops end the connection: a reader
    /// that misses events must know.
    pub(crate) fn deliver(&self, frame: Outgoing) {
        let mut line = lock(&self.line);
        if self.is_full(&line) {
            line.full_hits += 1;
            if line.full_hits >= self.bounds.full_hits {
                drop(line);
                self.kill();
            }
            return;
        }
        drop(line);
        self.answer(frame);
    }

    /// Puts in a frame that goes before all data.
    pub(crate) fn control(&self, frame: Outgoing) {
        let mut line = lock(&self.line);
        if !line.is_closing {
            line.control.push_back(frame);
        }
        drop(line);
        self.ready.give();
    }

    /// Ends the line: control frames and data that wait are written, then the close frame.
    pub(crate) fn close(&self, code: u16, reason: &'static str) {
        let mut line = lock(&self.line);
        if !line.is_closing {
            line.is_closing = true;
            line.data.push_back(Outgoing::Close(code, reason));
        }
        drop(line);
        self.ready.give();
    }

    /// Ends the connection at once, whatever waits.
    pub(crate) fn kill(&self) {
        self.kill.stop();
    }

    /// What ends the connection at once.
    pub(crate) fn killed(&self) -> &Stopper {
        &self.kill
    }

    /// Waits until the line is not full.
    pub(crate) async fn room(&self) {
        while self.is_full(&lock(&self.line)) {
            self.room.wait().await;
        }
    }

    /// The next frame, if one waits.
    pub(crate) fn take(&self) -> Option<Outgoing> {
        let mut line = lock(&self.line);
        if let Some(frame) = line.control.pop_front() {
            return Some(frame);
        }
        let frame = line.data.pop_front()?;
        line.bytes -= frame.bytes();
        if line.data.is_empty() {
            line.full_hits = 0;
        }
        if !self.is_full(&line) {
            drop(line);
            self.room.give();
        }
        Some(frame)
    }

    /// Waits until a frame may have come.
    pub(crate) async fn ready(&self) {
        self.ready.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { frames: 3, bytes: 1_000, full_hits: 2 };

    fn text(text: &str) -> Outgoing {
        Outgoing::Text(text.to_owned())
    }

    fn all(outbox: &Outbox) -> Vec<Outgoing> {
        std::iter::from_fn(|| outbox.take()).collect()
    }

    #[test]
    fn control_goes_first_and_data_keeps_its_order() {
        let outbox = Outbox::new(BOUNDS);
        for word in ["a", "b"] {
            outbox.deliver(text(word));
        }
        outbox.control(Outgoing::Ping);
        outbox.close(1000, "end");
        outbox.answer(text("late"));
        assert_eq!(all(&outbox), [Outgoing::Ping, text("a"), text("b"), Outgoing::Close(1000, "end")]);
    }

    #[test]
    fn a_full_line_drops_live_events_and_then_ends_the_connection() {
        let outbox = Outbox::new(BOUNDS);
        for word in ["a", "b", "c", "lost"] {
            outbox.deliver(text(word));
        }
        assert!(!outbox.killed().is_stopped());
        outbox.answer(text("kept"));
        outbox.deliver(text("lost"));
        assert!(outbox.killed().is_stopped());
        assert_eq!(all(&outbox), ["a", "b", "c", "kept"].map(text));
    }

    #[test]
    fn a_reader_that_catches_up_starts_anew() {
        let outbox = Outbox::new(BOUNDS);
        for _ in 0..3 {
            for _ in 0..4 {
                outbox.deliver(text("a"));
            }
            assert_eq!(all(&outbox).len(), 3);
        }
        assert!(!outbox.killed().is_stopped());
    }

    #[test]
    fn a_line_is_full_by_bytes_as_well() {
        let outbox = Outbox::new(BOUNDS);
        outbox.deliver(text(&"x".repeat(1_000)));
        outbox.deliver(text("lost"));
        assert_eq!(all(&outbox).len(), 1);
    }
}
