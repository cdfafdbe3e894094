//! Attempts that give no answer: refusals of each status, and everything that happens to a connection.

use waxlog_core::record::Failure;
use waxlog_core::session::Input;

use super::Request;
use crate::dice::Dice;

/// Statuses with their reason phrases.
const STATUSES: [(u16, &str); 12] = [
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (402, "Payment Required"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (408, "Request Timeout"),
    (413, "Payload Too Large"),
    (429, "Too Many Requests"),
    (499, "Client Closed Request"),
    (500, "Internal Server Error"),
    (503, "Service Unavailable"),
    (529, "Overloaded"),
];

/// What endpoints that have moved to the other wire say.
const MOVED: &str =
    "{\"error\":{\"message\":\"This model is only supported in v1/responses: use the Responses API\"}}";

/// One failed attempt.
pub(super) fn draw(request: Request<'_>, dice: &mut Dice) -> Input {
    let (failure, body) = if request.setup.may_upgrade() && dice.chance(250) {
        (Failure::Status { status: 400, reason: "Bad Request".to_owned() }, MOVED)
    } else {
        match dice.size(0..10) {
            0 => (Failure::Transport { text: "connection reset".to_owned() }, ""),
            1 => (Failure::Unsendable { text: "bad url".to_owned() }, ""),
            2 => (Failure::BodyRead { text: "end of file".to_owned() }, ""),
            3 => (Failure::TooLarge { text: "response over 16777216 bytes".to_owned() }, ""),
            _ => {
                let (status, reason) = dice.pick(&STATUSES);
                let body = dice.pick(&[
                    "",
                    "no",
                    "{\"error\":{\"metadata\":{\"error_type\":\"provider_overloaded\"}}}",
                ]);
                (Failure::Status { status, reason: reason.to_owned() }, body)
            }
        }
    };
    Input::AttemptFailed {
        asked: request.asked,
        failure,
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
        retry_after_ms: dice.chance(200).then(|| dice.within(0..200_000)),
        elapsed_ms: dice.within(0..200_000),
        jitter_permille: dice.permille(),
    }
}
