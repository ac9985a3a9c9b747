//! Taking a whole namespace away, with every message in it.

use crate::link::Link;
use crate::topology::{self, TopologyError};
use sexton_model::pool::PoolName;

impl Link {
    /// Deletes the queues and the exchange of this link's namespace, with every message in them; what is not there is
    /// no error. Nothing else may be using the namespace. Of pools that are not named the queues stay.
    ///
    /// # Errors
    ///
    /// [`TopologyError`]; what was deleted before stays deleted, and the call can be repeated.
    pub async fn remove_namespace(&self, pools: &[PoolName]) -> Result<(), TopologyError> {
        let opened = self.channel().await;
        let (_, channel) = opened.map_err(|error| TopologyError::Broker {
            what: format!("the removal of {}", self.namespace()),
            reason: error.to_string(),
        })?;
        topology::delete(&channel, self.namespace(), pools, self.timeouts().step).await
    }
}
