//! Whether role and user may do what the programs do. Of the ones that this program logs in as.

use super::some;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn look(facts: &Facts, found: &mut Vec<Finding>) {
    if let Ok(database) = &facts.database {
        if !database.withheld.is_empty() {
            let tables = database
                .withheld
                .iter()
                .map(|one| format!("{} ({})", one.table, one.privileges.join(" ")));
            let text = format!("role {} lacks: {}", database.server.user, some(tables));
            found.push(Finding::new(Code::DatabasePrivileges, text));
        }
        if let Some(why) = &database.deaf {
            found.push(Finding::new(Code::DatabaseDeaf, why));
        }
    }
    if let Ok(broker) = &facts.broker {
        for (right, said) in &broker.examined.refused {
            let text = format!("user {} has no {} permission: {said}", broker.user, right.as_str());
            found.push(Finding::new(Code::BrokerPermissions, text));
        }
    }
}
