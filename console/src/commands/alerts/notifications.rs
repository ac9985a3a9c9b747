//! `sexton alerts notifications` and `requeue`.

use clap::{Args, ValueEnum};
use serde_json::json;
use sexton_operations::alerts;
use sexton_store::alerts::list::MAX_LISTED;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago};

/// In which state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum State {
    /// To be sent, or tried again
    Pending,
    /// Accepted by the receiver
    Sent,
    /// Given up after three days
    Parked,
    /// Not sent, since nobody needed it any more
    Dropped,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Parked => "parked",
            Self::Dropped => "dropped",
        }
    }
}

/// Which notifications to list.
#[derive(Debug, Args)]
pub struct Notifications {
    /// Only in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only to this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=MAX_LISTED))]
    limit: i64,
}

/// Which parked notifications to try again.
#[derive(Debug, Args)]
pub struct Requeue {
    /// Ids of parked notifications
    #[arg(required_unless_present = "channel", conflicts_with = "channel")]
    ids: Vec<String>,
    /// All that are parked of this channel
    #[arg(long, value_name = "NAME", requires = "all_parked")]
    channel: Option<String>,
    /// With --channel: all of them
    #[arg(long, requires = "channel")]
    all_parked: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

pub(super) async fn list(arguments: &Notifications, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let (state, channel) = (arguments.state.map(State::as_str), arguments.channel.as_deref());
    let listed = alerts::notifications(&store, state, channel, arguments.limit).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"notifications": listed}));
    }
    if listed.is_empty() {
        return session.out.print("There is no such notification.");
    }
    let now = session.now(&store).await?;
    let headings = ["ID", "CHANNEL", "KIND", "ABOUT", "STATE", "TRIES", "WRITTEN", "ERROR"];
    let mut table = Table::new(&headings).unclipped(0);
    for one in &listed {
        let tone = match one.state.as_str() {
            "sent" => Tone::Good,
            "pending" => Tone::Busy,
            "parked" => Tone::Bad,
            _ => Tone::Faint,
        };
        let text = |text: &Option<String>| text.as_ref().map_or_else(Cell::none, Cell::new);
        table.row(vec![
            Cell::new(one.id.to_string()),
            Cell::new(&one.channel),
            Cell::new(&one.kind),
            text(&one.name),
            Cell::toned(&one.state, tone),
            Cell::number(one.attempts.into()),
            Cell::new(ago(one.created_at, now)),
            text(&one.last_error),
        ]);
    }
    session.out.table(table)
}

pub(super) async fn requeue(arguments: &Requeue, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let (channel, reason) = (arguments.channel.as_deref(), arguments.reason.as_deref());
    let ids = alerts::requeue(&store, &arguments.ids, channel, &session.actor, reason).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"requeued": ids}));
    }
    session.out.print(format!("{} notifications are tried again.", ids.len()))
}
