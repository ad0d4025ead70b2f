//! Defines the arguments for the account that owns the mail, and opens its vault.

use accounts::{Login, MailPassword, UnlockedAccount};
use clap::{Args, ValueEnum};
use mail_store::{MailVault, Mailbox};

use crate::args::data_dir::{DataDir, DataDirArgs};
use crate::args::password::PasswordSource;
use crate::commands::account::recovery_phrase;
use crate::output::Printer;

/// A format in which other programs store mail.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum MailFormat {
    /// A folder with a file for each message.
    Maildir,
    /// A file with all messages of a mailbox.
    Mbox,
}

/// The account that owns the mail, in the data directory.
#[derive(Args)]
pub(super) struct MailAccountArgs {
    /// Account that owns the mail. Prompts for its password, or one of its mail passwords.
    #[arg(long)]
    pub(super) login: String,
    #[command(flatten)]
    pub(super) password: PasswordSource,
    #[command(flatten)]
    pub(super) data: DataDirArgs,
}

/// A vault with the data directory that it is in.
pub(super) struct OpenMail {
    pub(super) vault: MailVault,
    /// Keeps the vault's threads running.
    _data_dir: DataDir,
}

/// Access to an account's mail.
pub(super) enum UnlockedMail {
    /// By the account's password: access to the account itself.
    Account(UnlockedAccount),
    /// By a mail password: access to the mail vault, and to nothing else.
    MailOnly(UnlockedAccount),
}

impl MailAccountArgs {
    /// Opens the mail of an account for which mail was set up, and files the deliveries that wait
    /// for it.
    pub(super) fn open(&self, output: Printer) -> anyhow::Result<OpenMail> {
        let (data_dir, unlocked) = self.unlock()?;
        let mail = unlocked.mail();
        let is_set_up = data_dir.accounts.mail_vault(mail.account)?.is_some();
        anyhow::ensure!(is_set_up, accounts::Error::MailNotSetUp);
        let vault = data_dir.open_mail(&mail)?;
        file_waiting(data_dir, vault, output)
    }

    /// Opens the mail of an account, and sets it up if it is not.
    pub(super) fn open_or_create(&self, output: Printer) -> anyhow::Result<OpenMail> {
        let (data_dir, unlocked) = self.unlock()?;
        let mail = unlocked.mail();
        let is_set_up = data_dir.accounts.mail_vault(mail.account)?.is_some();
        let vault = match &unlocked {
            UnlockedMail::Account(account) if !is_set_up => {
                self.set_up(&data_dir, account, output)?
            }
            _ => data_dir.open_mail(&mail)?,
        };
        file_waiting(data_dir, vault, output)
    }

    /// Sets up mail for an account, and offers its owner a recovery phrase.
    pub(super) fn set_up(
        &self,
        data_dir: &DataDir,
        account: &UnlockedAccount,
        output: Printer,
    ) -> anyhow::Result<MailVault> {
        let vault = data_dir.open_mail(&account.mail_vault())?;
        output.line(format_args!("set up mail for account {}", account.login));
        recovery_phrase::offer(data_dir, account, &self.password, output)?;
        Ok(vault)
    }

    /// Returns access to the account's mail, with its password or one of its mail passwords.
    pub(super) fn unlock(&self) -> anyhow::Result<(DataDir, UnlockedMail)> {
        let data_dir = DataDir::open_accounts_only(&self.data)?;
        let login = Login::parse(&self.login)?;
        let text = self.password.read(&format!("Password for {login}: "))?;
        if let Some(password) = MailPassword::parse(&text) {
            match data_dir.accounts.unlock_mail(&login, &password) {
                // It may be the account's own password.
                Err(accounts::Error::WrongPassword) => {}
                mail => return Ok((data_dir, UnlockedMail::MailOnly(mail?))),
            }
        }
        let unlocked = data_dir.unlock_with(&login, text)?;
        Ok((data_dir, UnlockedMail::Account(unlocked)))
    }
}

impl UnlockedMail {
    /// Returns access to the mail vault.
    pub(super) fn mail(&self) -> UnlockedAccount {
        match self {
            Self::Account(account) => account.mail_vault(),
            Self::MailOnly(mail) => mail.clone(),
        }
    }
}

/// Files the deliveries that wait for an open mail vault.
fn file_waiting(data_dir: DataDir, vault: MailVault, output: Printer) -> anyhow::Result<OpenMail> {
    let spool = data_dir.open_spool()?;
    let bar = output.progress().with_message("filing");
    bar.set_length(spool.backlog(vault.id())?.count);
    let filed = vault.file_deliveries(&spool, &mut |report| bar.set_position(report.filed_count));
    bar.finish_and_clear();
    if filed?.set_aside_count > 0 {
        // The operator finds them with `warren mail spool list`.
        tracing::error!("some deliveries could not be opened; they were set aside");
    }
    Ok(OpenMail { vault, _data_dir: data_dir })
}

/// Returns the mailbox with this path.
pub(super) fn find_mailbox(vault: &MailVault, path: &str) -> anyhow::Result<Mailbox> {
    let id = vault.find_mailbox(path)?;
    let found = vault.mailboxes()?.into_iter().find(|mailbox| mailbox.id == id);
    Ok(found.ok_or_else(|| mail_store::Error::MailboxNotFound { path: path.to_owned() })?)
}
