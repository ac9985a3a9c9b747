//! Checks the privileges of the role and user that this program logs in as.

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    if let Ok(database) = &facts.database {
        if !database.missing_privileges.is_empty() {
            let tables = database
                .missing_privileges
                .iter()
                .map(|one| format!("{} ({})", one.table, one.privileges.join(" ")));
            let text = format!("role {} lacks: {}", database.server.user, join_first(tables));
            found.push(Finding::new(Code::DatabasePrivileges, text));
        }
        if let Some(why) = &database.notification_failure {
            found.push(Finding::new(Code::DatabaseDeaf, why));
        }
    }
    if let Ok(broker) = &facts.broker {
        for (right, error) in &broker.examined.refused {
            let text =
                format!("user {} has no {} permission: {error}", broker.user, right.as_str());
            found.push(Finding::new(Code::BrokerPermissions, text));
        }
    }
}
