//! Merging the chunks of a text that an agent says piece by piece. Time is given.

use serde_json::Value;

use super::TelemetryFrame;

/// How long a text waits for its next chunk, in milliseconds.
pub const FLUSH_AFTER_MS: u64 = 500;
/// When a chunk would make a text as long as this, in bytes, all that waits goes first: numbers stay in order.
pub const MAX_MERGED_BYTES: usize = 60_000;
/// The most texts that wait at one time; one more lets all of them go.
pub const MAX_OPEN_TEXTS: usize = 64;
const CHUNKS: [&str; 3] = ["agent_message_chunk", "user_message_chunk", "agent_thought_chunk"];
const UPDATE: &str = "/params/update";
const TEXT: &str = "/params/update/content/text";

/// Frames that wait to be merged. Frames go out in the order of their numbers.
#[derive(Debug, Default)]
pub struct Merger {
    open: Vec<Open>,
    since_ms: u64,
}

#[derive(Debug)]
struct Open {
    stream: Stream,
    frame: TelemetryFrame,
}

/// What two chunks must have in common to be one text.
#[derive(Debug, Clone, PartialEq)]
struct Stream {
    kind: String,
    chunk: String,
    message_id: Option<Value>,
    agent_index: Option<u64>,
    channel_id: Option<String>,
    session_id: Option<String>,
    turn_id: Option<String>,
}

impl Merger {
    /// Takes a frame and gives the frames that are to go now. Whatever is no chunk goes at once, behind all
    /// that waited.
    pub fn push(&mut self, frame: TelemetryFrame, now_ms: u64) -> Vec<TelemetryFrame> {
        let mut ready = self.flush_due(now_ms);
        let Some(stream) = Stream::of(&frame) else {
            ready.extend(self.flush());
            ready.push(frame);
            return ready;
        };
        if let Some(at) = self.open.iter().position(|open| open.stream == stream) {
            match append(&mut self.open[at].frame, &frame) {
                true => return ready,
                false => ready.extend(self.flush()),
            }
        } else if self.open.len() == MAX_OPEN_TEXTS {
            ready.extend(self.flush());
        }
        if self.open.is_empty() {
            self.since_ms = now_ms;
        }
        self.open.push(Open { stream, frame });
        ready
    }

    /// When [`Merger::flush_due`] has something to give, if anything waits.
    pub fn due_at_ms(&self) -> Option<u64> {
        (!self.open.is_empty()).then(|| self.since_ms.saturating_add(FLUSH_AFTER_MS))
    }

    /// The frames that have waited long enough.
    pub fn flush_due(&mut self, now_ms: u64) -> Vec<TelemetryFrame> {
        match self.due_at_ms() {
            Some(due) if due <= now_ms => self.flush(),
            _ => Vec::new(),
        }
    }

    /// All frames that wait.
    pub fn flush(&mut self) -> Vec<TelemetryFrame> {
        let mut frames: Vec<_> = self.open.drain(..).map(|open| open.frame).collect();
        frames.sort_by_key(|frame| frame.seq);
        frames
    }
}

impl Stream {
    /// The stream of a frame that is a chunk of text.
    fn of(frame: &TelemetryFrame) -> Option<Self> {
        let update = frame.payload.pointer(UPDATE)?;
        let chunk = update.get("sessionUpdate")?.as_str().filter(|chunk| CHUNKS.contains(chunk))?;
        frame.payload.pointer(TEXT)?.as_str()?;
        Some(Self {
            kind: frame.kind.clone(),
            chunk: chunk.to_owned(),
            message_id: update.get("messageId").cloned(),
            agent_index: frame.agent_index,
            channel_id: frame.channel_id.clone(),
            session_id: frame.session_id.clone(),
            turn_id: frame.turn_id.clone(),
        })
    }
}

/// Adds the text of a frame to another and takes over its number and time, unless the text would get too long.
fn append(open: &mut TelemetryFrame, next: &TelemetryFrame) -> bool {
    let Some(more) = next.payload.pointer(TEXT).and_then(Value::as_str) else { return false };
    let Some(Value::String(text)) = open.payload.pointer_mut(TEXT) else { return false };
    if text.len() + more.len() >= MAX_MERGED_BYTES {
        return false;
    }
    text.push_str(more);
    open.seq = next.seq;
    open.timestamp.clone_from(&next.timestamp);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chunk(seq: u64, message: &str, text: &str) -> TelemetryFrame {
        let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": message,
            "content": {"type": "text", "text": text}});
        let payload = json!({"method": "session/update", "params": {"sessionId": "s", "update": update}});
        TelemetryFrame::new(seq, format!("t{seq}"), "acp_read", payload)
    }

    fn text(frame: &TelemetryFrame) -> &str {
        frame.payload.pointer(TEXT).and_then(Value::as_str).unwrap()
    }

    fn other(seq: u64) -> TelemetryFrame {
        TelemetryFrame::new(seq, "t", "turn_completed", json!({}))
    }

    #[test]
    fn chunks_of_one_text_are_one_frame_with_the_last_number_and_time() {
        let mut merger = Merger::default();
        for (seq, piece) in [(1, "a"), (2, "b"), (3, "c")] {
            assert_eq!(merger.push(chunk(seq, "m", piece), 10), []);
        }
        let out = merger.push(other(4), 20);
        assert_eq!((out.len(), out[0].seq, out[0].timestamp.as_str()), (2, 3, "t3"));
        assert_eq!(text(&out[0]), "abc");
        assert_eq!(out[1], other(4));
    }

    #[test]
    fn two_texts_that_alternate_are_merged_each_for_itself() {
        let mut merger = Merger::default();
        for (seq, message) in [(1, "m"), (2, "n"), (3, "m"), (4, "n"), (5, "m")] {
            assert_eq!(merger.push(chunk(seq, message, message), 0), []);
        }
        let out: Vec<_> = merger.flush().iter().map(|frame| (frame.seq, text(frame).to_owned())).collect();
        assert_eq!(out, [(4, "nn".to_owned()), (5, "mmm".to_owned())]);
    }

    #[test]
    fn any_difference_of_the_stream_keeps_texts_apart() {
        let base = chunk(1, "m", "x");
        let mut thought = base.clone();
        thought.payload["params"]["update"]["sessionUpdate"] = "agent_thought_chunk".into();
        let others = [
            thought,
            TelemetryFrame { agent_index: Some(1), ..base.clone() },
            TelemetryFrame { channel_id: Some("c".into()), ..base.clone() },
            TelemetryFrame { session_id: Some("s".into()), ..base.clone() },
            TelemetryFrame { turn_id: Some("t".into()), ..base.clone() },
        ];
        let mut merger = Merger::default();
        merger.push(base, 0);
        for frame in others {
            merger.push(frame, 0);
        }
        assert_eq!(merger.flush().len(), 6);
    }

    #[test]
    fn a_text_goes_after_half_a_second() {
        let mut merger = Merger::default();
        assert_eq!(merger.due_at_ms(), None);
        merger.push(chunk(1, "m", "a"), 100);
        merger.push(chunk(2, "n", "b"), 550);
        assert_eq!(merger.due_at_ms(), Some(600));
        assert_eq!(merger.flush_due(599), []);
        assert_eq!(merger.flush_due(600).len(), 2);
        merger.push(chunk(3, "m", "c"), 700);
        let late = merger.push(chunk(4, "m", "d"), 1_200);
        assert_eq!((late.len(), text(&late[0])), (1, "c"));
        assert_eq!(merger.due_at_ms(), Some(1_700));
    }

    #[test]
    fn a_text_goes_before_it_gets_too_long() {
        let mut merger = Merger::default();
        merger.push(chunk(1, "m", &"x".repeat(MAX_MERGED_BYTES - 2)), 0);
        assert_eq!(merger.push(chunk(2, "m", "a"), 0), []);
        let out = merger.push(chunk(3, "m", "b"), 0);
        assert_eq!((out.len(), text(&out[0]).len()), (1, MAX_MERGED_BYTES - 1));
        assert_eq!(text(&merger.flush()[0]), "b");
    }

    #[test]
    fn a_text_that_is_full_takes_older_ones_along() {
        let mut merger = Merger::default();
        merger.push(chunk(1, "n", "older"), 0);
        merger.push(chunk(2, "m", &"x".repeat(MAX_MERGED_BYTES - 1)), 0);
        let seqs: Vec<_> = merger.push(chunk(3, "m", "b"), 0).iter().map(|frame| frame.seq).collect();
        assert_eq!(seqs, [1, 2]);
        assert_eq!(merger.flush()[0].seq, 3);
    }

    #[test]
    fn no_more_texts_wait_than_may() {
        let mut merger = Merger::default();
        for seq in 0..MAX_OPEN_TEXTS {
            merger.push(chunk(seq as u64, &seq.to_string(), "x"), 0);
        }
        assert_eq!(merger.push(chunk(99, "new", "x"), 0).len(), MAX_OPEN_TEXTS);
        assert_eq!(merger.flush().len(), 1);
    }

    #[test]
    fn a_chunk_without_text_is_no_chunk_of_a_text() {
        let mut merger = Merger::default();
        let mut image = chunk(2, "m", "");
        image.payload["params"]["update"]["content"] = json!({"type": "image", "data": "x"});
        merger.push(chunk(1, "m", "a"), 0);
        assert_eq!(merger.push(image.clone(), 0), [chunk(1, "m", "a"), image]);
    }
}
