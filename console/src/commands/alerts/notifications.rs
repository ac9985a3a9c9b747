//! `sexton alerts notifications` and `requeue`.

use clap::{Args, ValueEnum};
use serde_json::json;
use sexton_model::notification::NotificationState;
use sexton_operations::alerts;
use sexton_operations::paging::Page;
use uuid::Uuid;

use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
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

impl From<State> for NotificationState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Sent => Self::Sent,
            State::Parked => Self::Parked,
            State::Dropped => Self::Dropped,
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
    #[command(flatten)]
    page: PageOptions,
}

/// Which parked notifications to try again.
#[derive(Debug, Args)]
pub struct Requeue {
    /// Ids of parked notifications
    #[arg(required_unless_present = "channel", conflicts_with = "channel")]
    ids: Vec<Uuid>,
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
    let (state, channel) = (arguments.state.map(Into::into), arguments.channel.as_deref());
    let PageOptions { limit, cursor } = &arguments.page;
    let page = alerts::notifications(&store, state, channel, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items, next_cursor } = page;
    if items.is_empty() {
        return session.out.print("There is no such notification.");
    }
    let now = session.now(&store).await?;
    let headings = ["ID", "CHANNEL", "KIND", "ABOUT", "STATE", "TRIES", "WRITTEN", "ERROR"];
    let mut table = Table::new(&headings).unclipped(0);
    for one in &items {
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
    session.out.table(table)?;
    render_next(next_cursor.as_ref(), session)
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
