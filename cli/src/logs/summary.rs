//! A record in a few words.

use waxlog_core::record::{CallOutcome, Failure, Head, HookOutcome, Outcome, PermissionAnswer, Record};

use crate::readable::brief;
use crate::table::counted;

/// What happened, on one line.
pub(super) fn summary(record: &Record) -> String {
    match &record.head {
        Head::SessionOpened(opened) => {
            let (tools, servers) = (opened.catalogue.tools.len(), opened.servers.len());
            let offered =
                format!("{} of {}", counted(tools as u64, "tool"), counted(servers as u64, "server"));
            format!("model {}, {offered}, in {}", opened.settings.model, opened.cwd)
        }
        Head::SessionResumed { opened, .. } => {
            let servers = counted(opened.servers.len() as u64, "server");
            format!("goes on with model {} and {servers}", opened.settings.model)
        }
        Head::OptionSelected { option, value, .. } => {
            format!("{} is {value} from the next prompt on", option.as_str())
        }
        Head::CloseRequested { .. } => "the client wants the session closed".to_owned(),
        Head::SessionClosed { .. } => "closed; it may come back".to_owned(),
        Head::DeleteRequested { .. } => "the client wants the session off its list".to_owned(),
        Head::SessionDeleted { .. } => "off the client's list; the records stay".to_owned(),
        Head::TurnPrompted { turn, .. } => format!("{turn} begins"),
        Head::LineRefused { message, .. } => brief(message),
        Head::SteerAccepted { message, .. } => format!("{message} waits for the next round"),
        Head::CancelRequested { .. } => "the client wants the turn to end".to_owned(),
        Head::ModelSelected { model, .. } => format!("{model} from the next prompt on"),
        Head::SteersApplied { count } => format!("{} enter the history", counted(*count as u64, "steer")),
        Head::HistoryTruncated { items, bytes } => {
            format!("the oldest {} leave the history, {bytes} bytes", counted(*items as u64, "item"))
        }
        Head::MeshSought { asked } => format!("round {asked}: is there a mesh?"),
        Head::MeshAnswered { asked, available } => {
            format!("round {asked}: {}", if *available { "the mesh is asked" } else { "no mesh" })
        }
        Head::RoundAsked { asked, model, evidence, .. } => {
            format!("round {asked}: {} bytes to {model}", evidence.len)
        }
        Head::SummaryAsked { asked, model, evidence, .. } => {
            format!("round {asked}, a summary: {} bytes to {model}", evidence.len)
        }
        Head::HandoffDone { count, items, bytes } => {
            format!("handoff {count}: {} -> {} items, {} -> {} bytes", items.0, items.1, bytes.0, bytes.1)
        }
        Head::RoundAnswered { asked, status, elapsed_ms, .. } => {
            format!("round {asked}: status {status} after {elapsed_ms} ms")
        }
        Head::AttemptFailed { asked, failure: why, elapsed_ms, .. } => {
            format!("round {asked}: {} after {elapsed_ms} ms", failure(why))
        }
        Head::KeepaliveTicked { asked } => format!("round {asked}: the model is still silent"),
        other => of_calls_and_ends(other),
    }
}

fn of_calls_and_ends(head: &Head) -> String {
    match head {
        Head::PermissionAsked { asked, index, .. } => {
            format!("round {asked}, call {index}: may it run?")
        }
        Head::PermissionAnswered { asked, index, answer } => {
            format!("round {asked}, call {index}: {}", permission(answer))
        }
        Head::PermissionExpired { asked, index, after_secs } => {
            format!("round {asked}, call {index}: no word within {after_secs} s")
        }
        Head::CallsStarted { calls, .. } => {
            let calls = calls.iter().map(|call| format!("{} {}", call.name, call.id));
            calls.collect::<Vec<_>>().join(", ")
        }
        Head::CallFinished { asked, index, outcome, elapsed_ms } => {
            format!("round {asked}, call {index}: {} after {elapsed_ms} ms", call(outcome))
        }
        Head::SkillLoaded { asked, index, is_error } => {
            let how = if *is_error { "could not be loaded" } else { "loaded" };
            format!("round {asked}, call {index}: skill {how}")
        }
        Head::DrainExpired { asked } => format!("round {asked}: stopped calls had their time"),
        Head::HooksAsked { asked, hook, servers } => {
            let servers = counted(servers.len() as u64, "server");
            format!("round {asked}: {} of {servers}", hook.as_str())
        }
        Head::HooksFinished { asked, hook, outcomes, .. } => {
            let good = outcomes.iter().filter(|outcome| matches!(outcome, HookOutcome::Returned { .. }));
            format!("round {asked}: {}, {} of {} answered", hook.as_str(), good.count(), outcomes.len())
        }
        Head::EndObjected { objections, .. } => {
            let who = objections.iter().map(|objection| objection.server.as_str());
            format!("the turn must go on: {}", who.collect::<Vec<_>>().join(", "))
        }
        Head::ServerChanged { server, change } => {
            format!("server {server}: {}", brief(&format!("{change:?}")))
        }
        Head::TurnEnded { outcome: Outcome::Stopped(stop), .. } => stop.as_str().to_owned(),
        Head::TurnEnded { outcome: Outcome::Failed { code, message }, .. } => {
            format!("error {code}: {}", brief(message))
        }
        Head::TurnInterrupted { .. } => "found without an end after a kill".to_owned(),
        // Every other kind has its words above; one that is added shows by its name alone until it has.
        _ => String::new(),
    }
}

/// Why an attempt gave no answer.
fn failure(failure: &Failure) -> String {
    match failure {
        Failure::Status { status, reason } => format!("status {status} {reason}"),
        Failure::Transport { text } => format!("no answer: {}", brief(text)),
        Failure::Unsendable { text } => format!("cannot be sent: {}", brief(text)),
        Failure::BodyRead { text } => format!("the answer broke off: {}", brief(text)),
        Failure::TooLarge { text } => format!("the answer is too large: {}", brief(text)),
        Failure::Auth { text } => format!("no token: {}", brief(text)),
    }
}

/// What the client said to a call.
fn permission(answer: &PermissionAnswer) -> String {
    match answer {
        PermissionAnswer::AllowOnce => "allowed".to_owned(),
        PermissionAnswer::AllowAlways => "allowed, and its tool in this session".to_owned(),
        PermissionAnswer::RejectOnce => "refused".to_owned(),
        PermissionAnswer::RejectAlways => "refused, and its tool in this session".to_owned(),
        PermissionAnswer::Cancelled => "the turn is taken back".to_owned(),
        PermissionAnswer::Unusable { text } => format!("no usable answer: {}", brief(text)),
    }
}

/// How a call ended.
fn call(outcome: &CallOutcome) -> String {
    match outcome {
        CallOutcome::Returned => "returned".to_owned(),
        CallOutcome::TransportFailed { text } | CallOutcome::Unavailable { text } => brief(text),
        CallOutcome::TimedOut { after_secs } => format!("timed out, the limit is {after_secs} s"),
        CallOutcome::Cancelled => "cancelled".to_owned(),
        CallOutcome::Interrupted => "interrupted, effects unknown".to_owned(),
    }
}
