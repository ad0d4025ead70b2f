//! What became of an old server's data.

use serde::Serialize;

/// Rows that are named as examples.
const EXAMPLES_MAX: usize = 5;

/// What was taken over, and what was not.
#[derive(Clone, Debug, Serialize)]
pub struct ImportReport {
    /// In the order in which they were made; deleted ones, too.
    pub budgets: Vec<ImportedBudget>,
    /// Tokens that go on being valid.
    pub tokens_count: u64,
    /// Everything else.
    pub left_out: SkippedData,
    /// An import had broken off before; what it had left was removed.
    pub is_again: bool,
}

/// A budget that Warren has now.
#[derive(Clone, Debug, Serialize)]
pub struct ImportedBudget {
    /// Its id for ever.
    pub file_id: String,
    /// Of its messages; `None` after a reset.
    pub group_id: Option<String>,
    /// As shown to people.
    pub name: Option<String>,
    /// Whether a user deleted it: its id is not used again.
    pub is_deleted: bool,
    /// Whether the apps encrypt it.
    pub is_encrypted: bool,
    /// Messages that were taken over.
    pub messages_count: u64,
    /// Of their contents.
    pub messages_bytes: u64,
    /// Of the budget's file; `None` if the old server had lost it.
    pub file_bytes: Option<u64>,
    /// What was wrong with the trie, which was then made anew from the messages: apps find the
    /// difference at their next sync. `None` if it is the old server's, byte for byte.
    pub trie_fault: Option<String>,
    /// Messages whose timestamp is not canonical: left out.
    pub not_canonical: RowExamples,
}

/// Rows with something in common.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RowExamples {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<String>,
}

impl RowExamples {
    pub(super) fn add(&mut self, row: &[u8]) {
        self.count += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(String::from_utf8_lossy(row).into_owned());
        }
    }
}

/// What stays in the old server's folders alone.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SkippedData {
    /// Budgets of other users: Warren has one.
    pub files_of_others: Vec<OtherUsersBudget>,
    /// Who else may use budgets that are taken over: here only the password's owner may.
    pub access_of_others: Vec<OtherUsersAccess>,
    /// Budgets whose file id or group id no server takes.
    pub files_with_invalid_id: Vec<String>,
    /// Files in the folder of budgets that belong to none.
    pub stray_files: Vec<String>,
    /// Tokens that are no longer valid.
    pub tokens_expired: u64,
    /// Tokens of other users.
    pub tokens_of_others: u64,
    /// Tokens too short to be secrets.
    pub tokens_too_short: u64,
    /// Access keys of banks: Warren does not talk to any.
    pub secrets: u64,
    /// Whether people logged in by `OpenID`: from now on by the password alone.
    pub openid: bool,
}

/// A budget of another user.
#[derive(Clone, Debug, Serialize)]
pub struct OtherUsersBudget {
    /// Its id.
    pub file_id: String,
    /// As shown to people.
    pub name: Option<String>,
    /// The user's name.
    pub owner: String,
}

/// Another user's access to a budget that is taken over.
#[derive(Clone, Debug, Serialize)]
pub struct OtherUsersAccess {
    /// The budget's id.
    pub file_id: String,
    /// As shown to people.
    pub name: Option<String>,
    /// The user's name.
    pub user: String,
}

/// How far it is.
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
