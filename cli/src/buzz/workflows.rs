//! `workflows`: what runs by itself in a channel.

use serde_json::{json, Map, Value};
use structopt::StructOpt;
use waxlog_nostr::build::workflow::{self, WorkflowId};
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::coordinate::Coordinate;
use waxlog_nostr::kind::WORKFLOW;
use waxlog_nostr::{Draft, Event, Filter};

use super::context::{text_or_stdin, Context};
use super::failure::{as_usage, Failure};
use super::output::{event_list, written, Format, Output};

/// What a run leaves behind: that it was started, that a step began, that it ended.
const RUN_KINDS: [u16; 3] = [46_001, 46_002, 46_003];
/// The most entries of runs that are listed.
const MAX_RUNS: usize = 100;

// Defines, starts and decides workflows. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog workflows list --channel UUID")]
pub(crate) enum Workflows {
    /// Lists the workflows of a channel.
    #[structopt(after_help = "EXAMPLE:\n    waxlog workflows list --channel UUID")]
    List {
        /// The channel
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
    },
    /// Shows a workflow.
    #[structopt(after_help = "EXAMPLE:\n    waxlog workflows get --workflow UUID")]
    Get {
        /// The workflow
        #[structopt(long, value_name = "UUID")]
        workflow: WorkflowId,
    },
    /// Defines a workflow in a channel.
    #[structopt(after_help = "EXAMPLE:\n    waxlog workflows create --channel UUID --yaml - < flow.yaml")]
    Create {
        /// The channel
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
        /// The definition, or - for stdin
        #[structopt(long, value_name = "YAML", allow_hyphen_values = true)]
        yaml: String,
    },
    /// Defines a workflow of yours anew.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog workflows update --channel UUID --workflow UUID --yaml - < flow.yaml"
    )]
    Update {
        /// The channel
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
        /// The workflow
        #[structopt(long, value_name = "UUID")]
        workflow: WorkflowId,
        /// The definition, or - for stdin
        #[structopt(long, value_name = "YAML", allow_hyphen_values = true)]
        yaml: String,
    },
    /// Deletes a workflow of yours.
    #[structopt(after_help = "EXAMPLE:\n    waxlog workflows delete --workflow UUID")]
    Delete {
        /// The workflow
        #[structopt(long, value_name = "UUID")]
        workflow: WorkflowId,
    },
    /// Starts a workflow.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog workflows trigger --workflow UUID --inputs '{\"name\":\"x\"}'"
    )]
    Trigger {
        /// The workflow
        #[structopt(long, value_name = "UUID")]
        workflow: WorkflowId,
        /// A JSON object
        #[structopt(long, value_name = "JSON")]
        inputs: Option<String>,
    },
    /// Lists what the runs of a workflow left behind.
    #[structopt(after_help = "EXAMPLE:\n    waxlog workflows runs --workflow UUID --limit 5")]
    Runs {
        /// The workflow
        #[structopt(long, value_name = "UUID")]
        workflow: WorkflowId,
        /// At most so many, up to 100
        #[structopt(long, value_name = "N", default_value = "20")]
        limit: usize,
    },
    /// Lets a run that waits go on, or ends it.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog workflows approve --token TOKEN --approved false --note 'not today'"
    )]
    Approve {
        /// The token of the step that waits
        #[structopt(long, value_name = "TOKEN")]
        token: String,
        /// Whether it may go on
        #[structopt(long, value_name = "BOOL", default_value = "true", possible_values = &["true", "false"], parse(try_from_str))]
        approved: bool,
        /// Why
        #[structopt(
            long,
            value_name = "TEXT",
            allow_hyphen_values = true,
            default_value = "",
            hide_default_value = true
        )]
        note: String,
    },
}

impl Workflows {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Workflows::List { channel } => {
                let found =
                    context.query(&[Filter::new().kinds([WORKFLOW]).tag('h', [channel.to_string()])])?;
                Ok(found.iter().map(shown).collect::<Value>().into())
            }
            Workflows::Get { workflow } => {
                let found = context.first(of(&[WORKFLOW], &workflow))?;
                Ok(found.as_ref().map_or(Value::Null, shown).into())
            }
            Workflows::Create { channel, yaml } => create(context, &channel, yaml),
            Workflows::Update { channel, workflow, yaml } => update(context, &channel, &workflow, yaml),
            Workflows::Delete { workflow } => {
                context.publish(workflow::deletion(&workflow, context.me(), context.now()))
            }
            Workflows::Trigger { workflow, inputs } => {
                let inputs = inputs.map(|text| read_inputs(&text)).transpose()?;
                let draft = workflow::trigger(&workflow, inputs.as_ref(), context.now());
                context.publish(draft.map_err(as_usage)?)
            }
            Workflows::Runs { workflow, limit } => {
                let found = context.query(&[of(&RUN_KINDS, &workflow).limit(limit.min(MAX_RUNS))])?;
                Ok(event_list(&found, Format::Json).into())
            }
            Workflows::Approve { token, approved, note } => {
                let draft = workflow::decision(&token, approved, &note, context.now());
                context.publish(draft.map_err(as_usage)?)
            }
        }
    }
}

fn of(kinds: &[u16], workflow: &WorkflowId) -> Filter {
    Filter::new().kinds(kinds.iter().copied()).tag('d', [workflow.to_string()])
}

fn shown(event: &Event) -> Value {
    json!({
        "workflow_id": event.identifier(),
        "content": event.content,
        "created_at": event.created_at,
        "pubkey": event.pubkey,
    })
}

fn create(context: &Context, channel: &ChannelId, yaml: String) -> Result<Output, Failure> {
    let workflow = WorkflowId::from_random(*uuid::Uuid::new_v4().as_bytes());
    let draft = workflow::definition(&workflow, channel, &text_or_stdin(yaml)?, context.now());
    let mut result = written(&context.send(draft.map_err(as_usage)?)?);
    result["workflow_id"] = workflow.to_string().into();
    Ok(result.into())
}

fn update(
    context: &Context,
    channel: &ChannelId,
    workflow: &WorkflowId,
    yaml: String,
) -> Result<Output, Failure> {
    // What cannot be built is told before the relay is asked for the version that it replaces.
    let draft = workflow::definition(workflow, channel, &text_or_stdin(yaml)?, context.now());
    let draft = draft.map_err(as_usage)?;
    let address = Coordinate::new(WORKFLOW, context.me(), workflow.to_string());
    let created_at = context.time_past(address.filter())?;
    context.publish(Draft { created_at, ..draft })
}

fn read_inputs(text: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(text).map_err(|error| as_usage(format!("--inputs must be a JSON object: {error}")))
}
