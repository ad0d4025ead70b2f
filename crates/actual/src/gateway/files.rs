//! Handles the data about budgets other than messages and files: names, keys and deletion.

use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};

use crate::gateway::budget::{OpenBudget, amend};
use crate::gateway::error::ActualError;
use crate::gateway::form::FormBody;
use crate::gateway::head::RequestHead;
use crate::gateway::json_response::JsonUtf8;
use crate::gateway::session::{AppSession, text};
use crate::gateway::state::ActualGateway;
use crate::gateway_state::{BudgetKey, BudgetState};
use crate::trie::MerkleTrie;

/// Returns the user list of a file, which always has one user.
fn users(user_id: &str) -> Value {
    json!([{"userId": user_id, "displayName": "", "userName": "", "owner": true}])
}

pub(crate) async fn list(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
) -> Result<JsonUtf8, ActualError> {
    let session = gateway.session(&head, None).await?;
    let user_id = gateway.owner(&session.unlocked).await?.user_id;
    let file = |budget: BudgetState| {
        json!({
            "deleted": 0,
            "fileId": budget.file_id,
            "groupId": budget.group_id,
            "name": budget.name,
            "encryptKeyId": budget.key.id,
            "owner": user_id,
            "usersWithAccess": users(&user_id),
        })
    };
    let files: Vec<_> = gateway.budgets(&session).await?.into_iter().map(file).collect();
    Ok(JsonUtf8(json!({"status": "ok", "data": files})))
}

pub(crate) async fn info(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
) -> Result<JsonUtf8, ActualError> {
    let session = gateway.session(&head, None).await?;
    let file_id = text(&head.headers, "x-actual-file-id").unwrap_or_default();
    let BudgetState { file_id, group_id, name, encrypt_meta, .. } =
        gateway.budget(&session, &file_id, ActualError::NoFileInfo).await?.budget;
    let meta: Option<Value> = encrypt_meta
        .map(|meta| serde_json::from_str(&meta))
        .transpose()
        .map_err(ActualError::internal)?;
    let user_id = gateway.owner(&session.unlocked).await?.user_id;
    Ok(JsonUtf8(json!({"status": "ok", "data": {
        "deleted": 0,
        "fileId": file_id,
        "groupId": group_id,
        "name": name,
        "encryptMeta": meta,
        "usersWithAccess": users(&user_id),
    }})))
}

fn ok() -> JsonUtf8 {
    JsonUtf8(json!({"status": "ok"}))
}

impl ActualGateway {
    /// Returns the session, and the budget that the body names.
    async fn budget_in_body(
        self: &Arc<Self>,
        head: &RequestHead,
        form: &FormBody,
        missing: ActualError,
    ) -> Result<(AppSession, OpenBudget), ActualError> {
        let session = self.session(head, form.token()).await?;
        let file_id = form.text("fileId").unwrap_or_default();
        let open = self.budget(&session, file_id, missing).await?;
        Ok((session, open))
    }
}

pub(crate) async fn get_key(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let (_, open) = gateway.budget_in_body(&head, &form, ActualError::FILE_NOT_FOUND).await?;
    let BudgetKey { id, salt, test } = open.budget.key;
    Ok(JsonUtf8(json!({"status": "ok", "data": {"id": id, "salt": salt, "test": test}})))
}

/// Registers the key that apps encrypt with: its id, and the data to check a password. A field that
/// is not sent is unchanged.
pub(crate) async fn create_key(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let (_, open) = gateway.budget_in_body(&head, &form, ActualError::FILE_NOT_FOUND).await?;
    let sent = |name: &str| {
        let is_sent = form.fields.as_ref().is_some_and(|fields| fields.contains_key(name));
        is_sent.then(|| form.text(name).map(str::to_owned))
    };
    let (id, salt, test) = (sent("keyId"), sent("keySalt"), sent("testContent"));
    open.change(move |budget| {
        let BudgetKey { id: old_id, salt: old_salt, test: old_test } = &mut budget.key;
        for (old, new) in [(old_id, &id), (old_salt, &salt), (old_test, &test)] {
            if let Some(new) = new {
                old.clone_from(new);
            }
        }
        Ok(())
    })
    .await?;
    Ok(ok())
}

/// Removes all messages. Apps cannot sync until the next upload.
pub(crate) async fn reset(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let (_, open) =
        gateway.budget_in_body(&head, &form, ActualError::USER_OR_FILE_NOT_FOUND).await?;
    let without_group = |record: &[u8], _: &[_]| {
        let found = BudgetState::decode_record(record)?;
        let (mut budget, _) = found.ok_or(ActualError::USER_OR_FILE_NOT_FOUND)?;
        budget.group_id = None;
        let mut record = Vec::new();
        budget.encode_header(&mut record);
        MerkleTrie::new().encode(&mut record);
        Ok(record)
    };
    open.vault.clear(Arc::new(without_group)).await?;
    Ok(ok())
}

pub(crate) async fn rename(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let (_, open) = gateway.budget_in_body(&head, &form, ActualError::FILE_NOT_FOUND).await?;
    if let Some(name) = form.fields.as_ref().and_then(|fields| fields.get("name")) {
        let name = name.as_str().map(str::to_owned);
        open.change(move |budget| {
            budget.name.clone_from(&name);
            Ok(())
        })
        .await?;
    }
    Ok(ok())
}

/// Hides a budget. Like the published server, this keeps its contents.
pub(crate) async fn delete(
    State(gateway): State<Arc<ActualGateway>>,
    head: RequestHead,
    form: FormBody,
) -> Result<JsonUtf8, ActualError> {
    let session = gateway.session(&head, form.token()).await?;
    if form.get("fileId").is_none_or(|id| id == "") {
        return Err(ActualError::FileIdRequired);
    }
    let file_id = form.text("fileId").unwrap_or_default();
    let open = gateway.budget(&session, file_id, ActualError::FILE_NOT_FOUND).await?;
    let hide = amend(|budget, _| {
        budget.is_deleted = true;
        Ok(())
    });
    open.vault.exchange(sync_store::MessageBatch::default(), hide).await?;
    Ok(ok())
}
