//! The names of the mailboxes, the same in all mail servers.

/// Returns the login of a mailbox.
pub(super) fn login_of(number: usize) -> String {
    format!("user{number}")
}

/// Returns the address of a mailbox.
pub(super) fn address_of(number: usize) -> String {
    format!("{}@example.org", login_of(number))
}
