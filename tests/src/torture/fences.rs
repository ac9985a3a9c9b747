//! The fences of the protocol, and how each is taken down in a copy of the source.
//!
//! The names are those of [the proof](../../../docs/internals/proof.md), where a model loses the same fences and
//! shows what goes wrong; those of bulks (`bulk_fences`) are in no model. Here it is the real code on real servers that
//! must be seen to go wrong.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::bulk_fences::BULK_FENCES;

/// A fence, as it stands in the source.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    /// What `FENCE_OFF` calls it.
    pub name: &'static str,
    /// What has to be changed to take it down.
    pub edits: &'static [Edit],
    /// The faults that come first in a run without it; the others follow.
    pub first: &'static [&'static str],
    /// The kinds of promises that a run without it may break first: any other is no evidence for it.
    pub expected: &'static [&'static str],
}

/// No fence at all: the build is as it should be, and a run of it must break nothing. What a run
/// without a fence breaks is otherwise no evidence.
pub const CONTROL: Fence = Fence {
    name: "none",
    edits: &[],
    first: &[
        "ticket of an earlier attempt, kept",
        "cancelled before it is opened",
        "parked message moved after a discard",
        "ticket doubled while it runs",
        "leases over by the database's clock alone",
        "worker to RabbitMQ: cut",
        "ticket before it is due",
        "schedule set back",
        "worker.settled",
        "worker to PostgreSQL: black hole",
        "worker frozen",
        "worker to PostgreSQL: answer to an open lost",
        "scheduler.sweep_failed",
        "bulk beside an operator, a scheduler killed",
        "bulk, a worker killed in a question",
    ],
    expected: &[],
};

/// A text that stands once in a file, and what is to stand there instead.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// From the repository's root.
    pub file: &'static str,
    /// As it stands there.
    pub text: &'static str,
    /// Without the fence.
    pub instead: &'static str,
}

const OPEN: &str = "shared/store/src/attempts/open.rs";

/// Nobody waits for the length of a lease.
const EXPIRE_AT_ONCE: Edit = Edit {
    file: "shared/model/src/lease.rs",
    text: "    now.saturating_duration_since(since) >= lease\n",
    instead: "    now.saturating_duration_since(since) >= lease.min(Duration::ZERO)\n",
};

/// A fence of the model that no strike aims at: between a publish and its mark lies a quarter of a second. Without it
/// `it::store::unopened::a_ticket_is_handed_back_only_to_a_row_that_still_waits_with_its_number` fails.
#[cfg(test)]
const NOT_INJECTED: &str = "new-revision";

/// Those of the model.
pub const FENCES: &[Fence] = &[
    Fence {
        name: "attempt-number",
        edits: &[Edit {
            file: OPEN,
            text: "WHERE e.attempt = r.attempt AND e.state IN ('pending', 'retrying', 'failed')",
            instead: "WHERE e.state IN ('pending', 'retrying', 'failed')",
        }],
        first: &["ticket of an earlier attempt, kept"],
        expected: &["ran unasked", "opened early"],
    },
    Fence {
        name: "state",
        edits: &[Edit {
            file: OPEN,
            text: "WHERE e.attempt = r.attempt AND e.state IN ('pending', 'retrying', 'failed')",
            instead: "WHERE e.attempt = r.attempt",
        }],
        first: &["cancelled before it is opened", "parked message moved after a discard"],
        // The primary key of attempts refused a second open of one number, until attempts were written at their end.
        expected: &["ran after its end", "opened twice", "overlapping runs"],
    },
    Fence {
        name: "worker",
        edits: &[
            Edit {
                file: OPEN,
                text: "e.open_token IS NOT DISTINCT FROM r.token AS \"mine!\"",
                instead: "r.token IS NOT NULL AS \"mine!\"",
            },
            Edit {
                file: OPEN,
                text: "WHERE e.state = 'running' AND e.attempt = r.attempt AND e.open_token = r.token",
                instead: "WHERE e.state = 'running' AND e.attempt = r.attempt",
            },
        ],
        first: &["ticket doubled while it runs", "worker to RabbitMQ: cut"],
        expected: &["opened twice", "overlapping runs"],
    },
    Fence {
        name: "lease",
        edits: &[
            EXPIRE_AT_ONCE,
            Edit {
                file: "shared/store/src/attempts/lost.rs",
                text: "e.open_token = r.token AND e.lease_until = r.lease_until",
                instead: "e.open_token = r.token AND r.lease_until IS NOT NULL",
            },
            Edit {
                file: "shared/store/src/attempts/lost.rs",
                text: "AND e.xmin::text::bigint = r.written_by AND",
                instead: "AND r.written_by IS NOT NULL AND",
            },
        ],
        first: &["ticket doubled while it runs"],
        expected: &["overlapping runs"],
    },
    Fence {
        name: "observation",
        edits: &[
            EXPIRE_AT_ONCE,
            Edit {
                file: "shared/store/src/attempts/running/page.sql",
                text: "coalesce(e.lease_ms, a.lease_ms) IS NULL AND e.lease_until >= coalesce($3, now()) AS \"alive!\"",
                instead: "e.lease_until >= coalesce($3, now()) AS \"alive!\"",
            },
        ],
        first: &["leases over by the database's clock alone"],
        expected: &["overlapping runs"],
    },
    Fence {
        name: "due-time",
        edits: &[Edit {
            file: OPEN,
            text: "AND coalesce(e.next_attempt_at, '-infinity') <= coalesce($6, now())",
            instead: "",
        }],
        first: &["ticket before it is due"],
        expected: &["opened early"],
    },
    Fence {
        name: "unique-key",
        edits: &[
            Edit {
                file: "migrations/0001_initial.up.sql",
                text: "    UNIQUE (job_id, execution_key),\n",
                instead: "",
            },
            Edit {
                file: "shared/store/src/firing.rs",
                text: "            ON CONFLICT (job_id, execution_key) DO NOTHING\n",
                instead: "",
            },
            Edit {
                file: "shared/store/src/foreign.rs",
                text: "        ON CONFLICT (job_id, execution_key) DO NOTHING\n",
                instead: "",
            },
            Edit {
                file: "shared/store/src/trigger/many.rs",
                text: "            ON CONFLICT (job_id, execution_key) DO NOTHING\n",
                instead: "",
            },
        ],
        first: &["schedule set back"],
        // Both executions of a firing have one key in the ledger: it may see both runs before the oracle reads the
        // rows.
        expected: &["claimed twice", "opened twice", "overlapping runs"],
    },
    Fence {
        name: "ticket_published_at",
        edits: &[Edit {
            file: "shared/store/src/tickets/relay.rs",
            text: "WHERE e.rev = p.rev AND e.ticket_published_at IS NULL",
            instead: "WHERE p.rev IS NOT NULL AND e.ticket_published_at IS NULL",
        }],
        first: &["worker.settled"],
        // The reconciler publishes such a ticket once more when five minutes are over; the patience of
        // these runs is shorter, so that it shows that a ticket was marked and is not there.
        expected: &["lost"],
    },
    Fence {
        name: "own-clock",
        edits: &[Edit {
            file: "worker/src/attempt/lease_renewer.rs",
            text: "    sent + lease.saturating_sub(margin(lease))",
            instead: "    sent + lease.saturating_sub(margin(lease)) + Duration::from_hours(1)",
        }],
        first: &["worker to PostgreSQL: black hole", "worker frozen"],
        expected: &["overlapping runs"],
    },
    Fence {
        name: "renewal-first",
        edits: &[Edit {
            file: "worker/src/slot.rs",
            text: "(!std::mem::replace(&mut is_repeated, true)).then(HostInstant::now)",
            instead: "(!std::mem::replace(&mut is_repeated, true) || is_repeated).then(HostInstant::now)",
        }],
        first: &["worker to PostgreSQL: answer to an open lost"],
        expected: &["overlapping runs"],
    },
    Fence {
        name: "new-number",
        edits: &[Edit {
            file: "shared/store/src/parked_messages.rs",
            text: "SET state = 'failed', attempt = attempt + 1, rev = rev + 1,",
            instead: "SET state = 'failed', rev = rev + 1,",
        }],
        first: &["scheduler.sweep_failed"],
        expected: &["ran unasked"],
    },
];

/// All of them, those of bulks at the end.
pub fn all() -> impl Iterator<Item = &'static Fence> {
    FENCES.iter().chain(BULK_FENCES)
}

impl Fence {
    /// The fence of this name.
    ///
    /// # Errors
    ///
    /// No fence has this name; the error lists the names.
    pub fn named(name: &str) -> Result<&'static Self> {
        let names: Vec<_> = all().map(|fence| fence.name).collect();
        let found = all().chain([&CONTROL]).find(|fence| fence.name == name);
        found.with_context(|| {
            format!("there is no fence {name}: write one of {}, or none", names.join(", "))
        })
    }

    /// What `file` holds without this fence.
    ///
    /// # Errors
    ///
    /// A text to be replaced does not stand there exactly once: the table has to follow the source.
    pub fn taken_down(&self, file: &Path, content: &str) -> Result<String> {
        let mut content = content.to_owned();
        for edit in self.edits.iter().filter(|edit| Path::new(edit.file) == file) {
            let times = content.matches(edit.text).count();
            ensure!(
                times == 1,
                "the fence {} is not to be found in {}: its text stands there {times} times; \
                 correct the table of fences",
                self.name,
                edit.file
            );
            content = content.replace(edit.text, edit.instead);
        }
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::torture::fault::Fault;

    #[test]
    fn every_fence_stands_in_the_source_where_the_table_says_and_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for fence in all() {
            for edit in fence.edits {
                let content = std::fs::read_to_string(root.join(edit.file)).unwrap();
                let without = fence.taken_down(Path::new(edit.file), &content);
                assert_ne!(without.unwrap(), content, "{}: {}", fence.name, edit.file);
            }
        }
    }

    #[test]
    fn every_first_fault_of_a_fence_exists_and_spares_the_servers() {
        for fence in all() {
            assert!(!fence.first.is_empty(), "{}", fence.name);
            for name in fence.first {
                let fault = Fault::named(name).unwrap_or_else(|| panic!("{name}"));
                assert!(!fault.is_of_server(), "{name}");
            }
        }
        let names: HashSet<_> = all().map(|fence| fence.name).collect();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn the_fences_are_those_of_the_proof() {
        let proof: Vec<_> = sexton_verify::protocol::fences::Fence::ALL
            .iter()
            .map(|fence| fence.title().replace(' ', "-"))
            .filter(|name| name != NOT_INJECTED)
            .collect();
        let names: Vec<_> = FENCES.iter().map(|fence| fence.name).collect();
        assert_eq!(names, proof);
    }

    #[test]
    fn the_control_run_injects_the_same_faults_as_the_runs_without_a_fence() {
        for fence in all() {
            assert!(!fence.expected.is_empty(), "{}", fence.name);
            for name in fence.first {
                assert!(CONTROL.first.contains(name), "{}: {name}", fence.name);
            }
        }
        assert!(CONTROL.expected.is_empty() && CONTROL.edits.is_empty());
    }

    #[test]
    fn a_changed_fence_text_is_reported() {
        let fence = Fence::named("due-time").unwrap();
        let file = Path::new(OPEN);
        let message = fence.taken_down(file, "something else").unwrap_err().to_string();
        assert!(message.contains("stands there 0 times; correct the table of fences"), "{message}");
        assert!(Fence::named("clock").unwrap_err().to_string().contains("own-clock"));
    }
}
