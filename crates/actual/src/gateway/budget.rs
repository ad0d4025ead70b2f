//! Finds a budget's vault and gateway state, and checks each request before it reaches either.

use std::sync::Arc;

use accounts::{UnlockedAccount, VaultId};
use crdt::Timestamp;
use serde_json::Value;
use server::GatewayServices;
use sync_store::{MessageBatch, UpdateStateFn, Vault};

use crate::gateway::error::ActualError;
use crate::gateway::session::AppSession;
use crate::gateway::state::ActualGateway;
use crate::gateway_state::BudgetState;

/// An open vault of a budget, with the gateway state as it was read.
pub(crate) struct OpenBudget {
    pub(crate) vault: Vault,
    pub(crate) budget: BudgetState,
}

impl ActualGateway {
    /// Returns the budget with a file id, or `missing` if there is none or it was deleted.
    pub(crate) async fn budget(
        self: &Arc<Self>,
        session: &AppSession,
        file_id: &str,
        missing: ActualError,
    ) -> Result<OpenBudget, ActualError> {
        if !is_id(file_id) {
            return Err(ActualError::INVALID_FILE_ID);
        }
        let open = self.find(session, file_id).await?;
        open.filter(|open| !open.budget.is_deleted).ok_or(missing)
    }

    /// Returns the budget with a file id, even if it was deleted.
    pub(crate) async fn find(
        self: &Arc<Self>,
        session: &AppSession,
        file_id: &str,
    ) -> Result<Option<OpenBudget>, ActualError> {
        let (gateway, unlocked, id) =
            (Arc::clone(self), session.unlocked.clone(), session.unlocked.sub_vault_id(file_id));
        let vault = move |_: &GatewayServices| gateway.open_sub_vault(&unlocked, &id);
        match self.services.blocking(vault).await?? {
            Some(vault) => OpenBudget::read(vault).await,
            None => Ok(None),
        }
    }

    /// Opens the vault of a budget, if there is one. Blocks.
    pub(crate) fn open_sub_vault(
        &self,
        unlocked: &UnlockedAccount,
        vault: &VaultId,
    ) -> Result<Option<Vault>, ActualError> {
        if !self.services.accounts().has_sub_vault(unlocked.account, vault)? {
            return Ok(None);
        }
        Ok(Some(self.services.vaults().open(&unlocked.sub_vault(vault))?))
    }

    /// Returns all budgets that were not deleted, in order of creation.
    pub(crate) async fn budgets(
        &self,
        session: &AppSession,
    ) -> Result<Vec<BudgetState>, ActualError> {
        let account = session.unlocked.account;
        let list = move |services: &GatewayServices| services.accounts().sub_vaults(account);
        let mut budgets = Vec::new();
        for vault in self.services.blocking(list).await?? {
            let vault = self.open(&session.unlocked.sub_vault(&vault)).await?;
            budgets.extend(OpenBudget::read(vault).await?.map(|open| open.budget));
        }
        budgets.retain(|budget| !budget.is_deleted);
        budgets.sort_by(|a, b| (a.created_ms, &a.file_id).cmp(&(b.created_ms, &b.file_id)));
        Ok(budgets)
    }
}

impl OpenBudget {
    /// Reads a budget's gateway state; `None` until the vault's first upload is complete.
    pub(crate) async fn read(vault: Vault) -> Result<Option<Self>, ActualError> {
        let recorded = vault.gateway_state().await?;
        let found = BudgetState::decode_record(&recorded.state)?;
        Ok(found.map(|(budget, _)| Self { vault, budget }))
    }

    /// Changes the gateway state except its trie. `change` may return an error, and may run again.
    pub(crate) async fn change(
        &self,
        change: impl Fn(&mut BudgetState) -> Result<(), ActualError> + Send + Sync + 'static,
    ) -> Result<(), ActualError> {
        let update = amend(move |budget, _| change(budget));
        self.vault.exchange(MessageBatch::default(), update).await?;
        Ok(())
    }
}

/// Returns an update of a gateway state that keeps the trie.
pub(crate) fn amend(
    change: impl Fn(&mut BudgetState, &[Timestamp]) -> Result<(), ActualError> + Send + Sync + 'static,
) -> UpdateStateFn {
    Arc::new(move |record, fresh| {
        let found = BudgetState::decode_record(record)?;
        let (mut budget, trie) = found.ok_or(ActualError::FILE_NOT_FOUND)?;
        change(&mut budget, fresh)?;
        let mut record = Vec::with_capacity(record.len());
        budget.encode_header(&mut record);
        record.extend_from_slice(trie);
        Ok(record)
    })
}

/// Returns whether a text may be the id of a file or a group.
pub(crate) fn is_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

/// The key that a file's metadata names. Like the apps, the published server treats a missing key
/// id as a key that is not registered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EncryptMetaKey {
    /// The file has no metadata.
    None,
    /// The key id in the metadata, if there is one.
    Named(Option<Value>),
}

impl EncryptMetaKey {
    pub(crate) fn from_meta(meta: Option<&str>) -> Result<Self, ActualError> {
        let Some(meta) = meta else { return Ok(Self::None) };
        let meta: Value = serde_json::from_str(meta).map_err(ActualError::internal)?;
        if meta.is_null() {
            return Err(ActualError::internal("a file's meta data is null"));
        }
        Ok(Self::Named(meta.get("keyId").cloned()))
    }

    pub(crate) fn is(&self, registered: Option<&str>) -> bool {
        match (self, registered) {
            (Self::None | Self::Named(Some(Value::Null)), None) => true,
            (Self::Named(Some(Value::String(key))), Some(registered)) => key == registered,
            _ => false,
        }
    }
}

/// Checks whether a budget accepts messages of this group, encrypted with this key.
pub(crate) fn check_sync(
    budget: &BudgetState,
    group_id: Option<&str>,
    key_id: Option<&str>,
) -> Result<(), ActualError> {
    let registered = budget.key.id.as_deref();
    if budget.is_deleted {
        return Err(ActualError::FILE_NOT_FOUND);
    }
    if budget.is_old_format() {
        return Err(ActualError::OLD_VERSION);
    }
    if budget.group_id.is_none() {
        return Err(ActualError::NEEDS_UPLOAD);
    }
    if !EncryptMetaKey::from_meta(budget.encrypt_meta.as_deref())?.is(registered) {
        return Err(ActualError::KEY_MISMATCH);
    }
    if budget.group_id.as_deref() != group_id {
        return Err(ActualError::HAS_RESET);
    }
    if key_id != registered {
        return Err(ActualError::HAS_NEW_KEY);
    }
    Ok(())
}

/// Checks whether a budget accepts a file of this group, encrypted with this key.
pub(crate) fn check_upload(
    budget: &BudgetState,
    group_id: Option<&str>,
    key: &EncryptMetaKey,
) -> Result<(), ActualError> {
    if budget.group_id.as_deref() != group_id {
        return Err(ActualError::HAS_RESET);
    }
    if !key.is(budget.key.id.as_deref()) {
        return Err(ActualError::HAS_NEW_KEY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_letters_digits_and_two_signs() {
        for id in ["a", "My-Finances-1a2b3c_", "0d3cb2f4-8b8b-4f3e-a3c9-3d2a7a0f1e55"] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", "a/b", "..", "a b", "ä", "a\n"] {
            assert!(!is_id(id), "{id:?}");
        }
    }

    #[test]
    fn the_key_of_meta_data_is_compared_as_it_stands() {
        let is = |meta, registered| EncryptMetaKey::from_meta(meta).unwrap().is(registered);
        assert!(is(None, None));
        assert!(!is(None, Some("k")));
        assert!(is(Some(r#"{"keyId":"k"}"#), Some("k")));
        assert!(!is(Some(r#"{"keyId":"k"}"#), Some("l")));
        assert!(is(Some(r#"{"keyId":null}"#), None));
        assert!(!is(Some("{}"), None));
        for meta in ["null", "{"] {
            assert!(
                matches!(EncryptMetaKey::from_meta(Some(meta)), Err(ActualError::Internal(_))),
                "{meta}"
            );
        }
    }
}
