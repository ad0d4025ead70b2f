//! The report of an import.

use serde::Serialize;
use utoipa::ToSchema;

/// The maximum number of rows that are named as examples.
const EXAMPLES_MAX: usize = 5;

/// The imported and the skipped data of an import.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ImportReport {
    /// The imported budgets in order of creation, including deleted ones.
    pub budgets: Vec<ImportedBudget>,
    /// The number of imported tokens, which stay valid.
    pub tokens_count: u64,
    /// The data that was not imported.
    pub skipped: SkippedData,
    /// Whether an earlier import was interrupted; its remains were removed.
    pub resumed: bool,
}

/// An imported budget.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ImportedBudget {
    /// The permanent id of the budget.
    pub file_id: String,
    /// The id that the apps gave to the budget's messages; null after a reset.
    pub group_id: Option<String>,
    /// The name that the apps show; null if they gave none.
    pub name: Option<String>,
    /// Whether a user deleted the budget; its id is not used again.
    pub deleted: bool,
    /// Whether the apps encrypt the budget.
    pub encrypted: bool,
    /// The number of imported messages.
    pub messages_count: u64,
    /// The size of the messages' contents in bytes.
    pub content_bytes: u64,
    /// The size of the budget's file in bytes; null if the old server had lost it.
    pub file_bytes: Option<u64>,
    /// The fault in the old server's Merkle trie, which was then rebuilt from the messages, so that
    /// apps find the difference at their next sync; null if the old server's trie was imported
    /// unchanged.
    pub trie_fault: Option<String>,
    /// The messages that were skipped because their timestamp is not canonical.
    pub not_canonical: RowExamples,
}

/// The number of rows with a common property, and examples of them.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RowExamples {
    /// The number of these rows.
    pub rows_count: u64,
    /// The first of these rows, at most five.
    pub examples: Vec<String>,
}

impl RowExamples {
    pub(super) fn add(&mut self, row: &[u8]) {
        self.rows_count += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(String::from_utf8_lossy(row).into_owned());
        }
    }
}

/// Data that was not imported.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct SkippedData {
    /// Budgets of other users, because a Warren account has one user.
    pub files_of_others: Vec<OtherUsersBudget>,
    /// Other users' access to imported budgets, which only the password's owner may use now.
    pub access_of_others: Vec<OtherUsersAccess>,
    /// The ids of budgets whose file id or group id no server accepts.
    pub files_with_invalid_id: Vec<String>,
    /// The names of files in the directory of budgets that belong to no budget.
    pub stray_files: Vec<String>,
    /// The number of tokens that are no longer valid.
    pub expired_tokens_count: u64,
    /// The number of tokens of other users.
    pub tokens_of_others_count: u64,
    /// The number of tokens that are too short or too long.
    pub invalid_tokens_count: u64,
    /// The number of bank access keys, because Warren does not connect to banks.
    pub secrets_count: u64,
    /// Whether people logged in with `OpenID`; only the password works now.
    pub openid: bool,
}

/// A budget of another user.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OtherUsersBudget {
    /// The permanent id of the budget.
    pub file_id: String,
    /// The name that the apps show; null if they gave none.
    pub name: Option<String>,
    /// The name of the user who owns the budget.
    pub owner: String,
}

/// Another user's access to an imported budget.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OtherUsersAccess {
    /// The permanent id of the budget.
    pub file_id: String,
    /// The name that the apps show; null if they gave none.
    pub name: Option<String>,
    /// The name of the user who has access.
    pub user: String,
}

/// The progress of an import.
pub(super) struct ImportProgress<'a> {
    done: u64,
    all: u64,
    tell: &'a mut dyn FnMut(u64, u64),
}

impl<'a> ImportProgress<'a> {
    pub(super) fn new(all: u64, tell: &'a mut dyn FnMut(u64, u64)) -> Self {
        tell(0, all);
        Self { done: 0, all, tell }
    }

    pub(super) fn add(&mut self, count: u64) {
        self.done += count;
        (self.tell)(self.done, self.all);
    }
}
