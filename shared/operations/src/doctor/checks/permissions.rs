//! Checks the privileges of the role and user that this program logs in as.

use sexton_store::doctor::Privileges;

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    if let Ok(database) = &facts.database {
        let Privileges { role, missing, .. } = &database.privileges;
        if !missing.is_empty() {
            let objects =
                missing.iter().map(|one| format!("{} ({})", one.object, one.privileges.join(" ")));
            let member = role.as_ref().map_or_else(String::new, |role| format!(", in {role},"));
            let text =
                format!("role {}{member} lacks: {}", database.server.user, join_first(objects));
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
