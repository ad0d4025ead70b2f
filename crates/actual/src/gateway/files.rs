//! What is kept of budgets beside their messages and files: names, keys, whether they were deleted.

use std::sync::Arc;

use axum::extract::State;
use serde_json::{Value, json};

use crate::gateway::Gate;
use crate::gateway::budget::{Open, amend};
use crate::gateway::fault::Fault;
use crate::gateway::form::Form;
use crate::gateway::head::Head;
use crate::gateway::said::Said;
use crate::gateway::session::{Session, text};
use crate::record::{Budget, BudgetKey};
use crate::trie::Trie;

/// The one user, as every file has it.
fn users(user_id: &str) -> Value {
    json!([{"userId": user_id, "displayName": "", "userName": "", "owner": true}])
}

pub(crate) async fn list(State(gate): State<Arc<Gate>>, head: Head) -> Result<Said, Fault> {
    let session = gate.session(&head, None).await?;
    let user_id = gate.owner(&session.unlocked).await?.user_id;
    let file = |budget: Budget| {
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
    let files: Vec<_> = gate.budgets(&session).await?.into_iter().map(file).collect();
    Ok(Said(json!({"status": "ok", "data": files})))
}

pub(crate) async fn info(State(gate): State<Arc<Gate>>, head: Head) -> Result<Said, Fault> {
    let session = gate.session(&head, None).await?;
    let file_id = text(&head.headers, "x-actual-file-id").unwrap_or_default();
    let Budget { file_id, group_id, name, encrypt_meta, .. } =
        gate.budget(&session, &file_id, Fault::NoFileInfo).await?.budget;
    let meta: Option<Value> = encrypt_meta
        .map(|meta| serde_json::from_str(&meta))
        .transpose()
        .map_err(Fault::internal)?;
    let user_id = gate.owner(&session.unlocked).await?.user_id;
    Ok(Said(json!({"status": "ok", "data": {
        "deleted": 0,
        "fileId": file_id,
        "groupId": group_id,
        "name": name,
        "encryptMeta": meta,
        "usersWithAccess": users(&user_id),
    }})))
}

fn ok() -> Said {
    Said(json!({"status": "ok"}))
}

impl Gate {
    /// Who asks, and the budget that the body names.
    async fn named(
        self: &Arc<Self>,
        head: &Head,
        form: &Form,
        missing: Fault,
    ) -> Result<(Session, Open), Fault> {
        let session = self.session(head, form.token()).await?;
        let file_id = form.text("fileId").unwrap_or_default();
        let open = self.budget(&session, file_id, missing).await?;
        Ok((session, open))
    }
}

pub(crate) async fn get_key(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let (_, open) = gate.named(&head, &form, Fault::FILE_NOT_FOUND).await?;
    let BudgetKey { id, salt, test } = open.budget.key;
    Ok(Said(json!({"status": "ok", "data": {"id": id, "salt": salt, "test": test}})))
}

/// Registers the key that apps encrypt with: its name, and what helps to try a password. A field
/// that is not sent stays as it was.
pub(crate) async fn create_key(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let (_, open) = gate.named(&head, &form, Fault::FILE_NOT_FOUND).await?;
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

/// Forgets all messages. Until the next upload nobody syncs.
pub(crate) async fn reset(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let (_, open) = gate.named(&head, &form, Fault::USER_OR_FILE_NOT_FOUND).await?;
    let without_group = |record: &[u8], _: &[_]| {
        let found = Budget::decode_record(record)?;
        let (mut budget, _) = found.ok_or(Fault::USER_OR_FILE_NOT_FOUND)?;
        budget.group_id = None;
        let mut record = Vec::new();
        budget.encode_header(&mut record);
        Trie::new().encode(&mut record);
        Ok(record)
    };
    open.vault.clear(Arc::new(without_group)).await?;
    Ok(ok())
}

pub(crate) async fn rename(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let (_, open) = gate.named(&head, &form, Fault::FILE_NOT_FOUND).await?;
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

/// Hides a budget. What it holds stays, as on the published server.
pub(crate) async fn delete(
    State(gate): State<Arc<Gate>>,
    head: Head,
    form: Form,
) -> Result<Said, Fault> {
    let session = gate.session(&head, form.token()).await?;
    if form.get("fileId").is_none_or(|id| id == "") {
        return Err(Fault::FileIdRequired);
    }
    let file_id = form.text("fileId").unwrap_or_default();
    let open = gate.budget(&session, file_id, Fault::FILE_NOT_FOUND).await?;
    let hide = amend(|budget, _| {
        budget.is_deleted = true;
        Ok(())
    });
    open.vault.exchange(sync_store::Batch::default(), hide).await?;
    Ok(ok())
}
