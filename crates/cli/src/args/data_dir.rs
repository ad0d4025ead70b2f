//! Opens the data directory, or the file, that a command works on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use accounts::{Accounts, KdfCost, Login, Password, UnlockedAccount, VaultId};
use anyhow::Context;
use clap::Args;
use engine::{Databases, EngineLimits};
use mail_store::{MailSecretKey, MailSpool, MailVault, SPOOL_FILE};
use protocol::ErrorCode;
use sync_store::{DataDirLock, PostgresDatabase, VaultFiles, Vaults};
use tokio::runtime::{Handle, Runtime};
use zeroize::Zeroizing;

use super::key_args::FileKeyArgs;
use super::password::PasswordSource;
use super::postgres_args;
use crate::output::CommandError;

/// The server's data directory.
#[derive(Args, Clone)]
pub(crate) struct DataDirArgs {
    /// Data directory of the server.
    #[arg(long, default_value = "./data", value_name = "DIR")]
    pub(crate) data: PathBuf,
}

impl DataDirArgs {
    /// Returns the path of the directory. Fails if no server has created it, so that no other
    /// directory becomes one by mistake.
    pub(crate) fn existing_directory(&self) -> anyhow::Result<&Path> {
        let path = &self.data;
        if path.join(accounts::ACCOUNTS_FILE).exists() {
            return Ok(path);
        }
        // A missing directory has the code of a missing file.
        let (code, problem) = if path.exists() {
            (ErrorCode::NotADataDirectory, "is not a Warren data directory")
        } else {
            (ErrorCode::FileNotFound, "does not exist")
        };
        let error = CommandError::new(code, format!("{} {problem}", path.display()));
        Err(error.with_hint("pass --data DIR with the data directory of a server").into())
    }
}

/// The data directory and the storage backend of its vaults.
#[derive(Args)]
pub(crate) struct StorageArgs {
    #[command(flatten)]
    pub(crate) data: DataDirArgs,
    #[command(flatten)]
    postgres: postgres_args::PostgresArgs,
}

impl StorageArgs {
    /// Locks the directory for a command that must not run at the same time as a server.
    pub(crate) fn lock(&self, command: &str) -> anyhow::Result<DataDirLock> {
        let locked = DataDirLock::acquire(self.data.existing_directory()?, command);
        locked.with_context(|| format!("{command} needs exclusive access to the data directory"))
    }
}

/// A tracked file, or an account in a data directory.
#[derive(Args)]
pub(crate) struct FileOrAccountArgs {
    /// Tracked SQLite file that syncs with the account. Give either FILE or --login.
    #[arg(required_unless_present = "login")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: FileKeyArgs,
    /// Account in the server's data directory (see --data). Prompts for its password.
    #[arg(long, conflicts_with = "file")]
    pub(crate) login: Option<String>,
    #[command(flatten)]
    pub(crate) place: StorageArgs,
    #[command(flatten)]
    pub(crate) password: PasswordSource,
}

impl FileOrAccountArgs {
    /// Opens the account's data directory, and unlocks the account with its password.
    pub(crate) fn unlock(&self) -> anyhow::Result<(DataDir, UnlockedAccount)> {
        let missing = || CommandError::usage("give a file or --login");
        let login = self.login.as_deref().ok_or_else(missing)?;
        let data_dir = DataDir::open(&self.place)?;
        let unlocked = data_dir.unlock(login, &self.password)?;
        Ok((data_dir, unlocked))
    }
}

/// An open data directory.
pub(crate) struct DataDir {
    pub(crate) accounts: Accounts,
    pub(crate) vaults: Vaults,
    /// The vaults that are files, even if `vaults` is in PostgreSQL.
    pub(crate) files: VaultFiles,
    pub(crate) path: PathBuf,
    databases: Arc<Databases>,
    runtime: Runtime,
}

impl DataDir {
    /// Opens the directory of a server.
    pub(crate) fn open(place: &StorageArgs) -> anyhow::Result<Self> {
        place.data.existing_directory()?;
        Self::open_or_create(place)
    }

    /// Opens the directory for commands that access no vault.
    pub(crate) fn open_accounts_only(data: &DataDirArgs) -> anyhow::Result<Self> {
        let data = data.clone();
        Self::open(&StorageArgs { data, postgres: postgres_args::PostgresArgs::default() })
    }

    /// Opens the directory, and creates it if it does not exist.
    pub(crate) fn open_or_create(place: &StorageArgs) -> anyhow::Result<Self> {
        let (data, url) = (&place.data.data, place.postgres.url()?);
        let databases = Arc::new(Databases::start(EngineLimits::default())?);
        let accounts = Accounts::open(&databases, data, KdfCost::DEFAULT)?;
        let runtime = Runtime::new()?;
        let files = VaultFiles::new(Arc::clone(&databases), data.clone());
        let postgres =
            url.map(|url| runtime.block_on(PostgresDatabase::connect(&url))).transpose()?;
        let vaults = postgres.map_or_else(|| Vaults::Files(files.clone()), Vaults::Postgres);
        Ok(Self { accounts, vaults, files, path: data.clone(), databases, runtime })
    }

    /// Unlocks an account with its password.
    pub(crate) fn unlock(
        &self,
        login: &str,
        password: &PasswordSource,
    ) -> anyhow::Result<UnlockedAccount> {
        let login = Login::parse(login)?;
        let password = password.read(&format!("Password for {login}: "))?;
        self.unlock_with(&login, password)
    }

    /// Unlocks an account with this password.
    pub(crate) fn unlock_with(
        &self,
        login: &Login,
        password: Zeroizing<String>,
    ) -> anyhow::Result<UnlockedAccount> {
        // Accounts from apps of other servers may have shorter passwords than new accounts.
        Ok(self.accounts.unlock(login, &Password::parse_any_length(password)?)?)
    }

    /// Opens a mail vault, and creates it if it is missing. `mail` is access to it.
    pub(crate) fn open_mail(&self, mail: &UnlockedAccount) -> anyhow::Result<MailVault> {
        let recorded = self.accounts.mail_vault(mail.account)?;
        let restores_count = recorded.as_ref().map_or(0, |row| row.restores_count);
        let public_key = MailSecretKey::derive(&mail.key).public_key().to_bytes();
        if recorded.as_ref().is_none_or(|row| row.public_key != public_key) {
            if recorded.is_some() {
                tracing::error!(
                    "the accounts file has another public key for the mail of {}; mail that was \
                     sealed to it cannot be read, and its own key was stored again",
                    mail.login
                );
            }
            // The vault's record comes first, so that its file is removed with the account.
            self.accounts.record_mail_vault(mail, &public_key)?;
        }
        Ok(MailVault::open(&self.databases, &self.path, mail, restores_count)?)
    }

    /// Opens the mail spool.
    pub(crate) fn open_spool(&self) -> anyhow::Result<MailSpool> {
        Ok(MailSpool::open(&self.databases, &self.path)?)
    }

    /// Returns the account's sub-vaults, which are not open yet.
    pub(crate) fn sub_vaults(
        &self,
        unlocked: &UnlockedAccount,
    ) -> anyhow::Result<Vec<UnlockedAccount>> {
        let children = self.accounts.sub_vaults(unlocked.account)?;
        Ok(children.iter().map(|vault| unlocked.sub_vault(vault)).collect())
    }

    /// Removes a vault, wherever it is. A mail vault is a file even if other vaults are in
    /// PostgreSQL.
    pub(crate) fn remove_vault(&self, vault: &VaultId) -> anyhow::Result<()> {
        if self.path.join(SPOOL_FILE).exists() {
            self.wait(self.open_spool()?.remove_vault(vault))?;
        }
        if matches!(self.vaults, Vaults::Postgres(_)) {
            self.wait(self.vaults.remove(vault))?;
        }
        Ok(self.wait(Vaults::Files(self.files.clone()).remove(vault))?)
    }

    /// Returns the path of a vault's file; an error if the vaults are in PostgreSQL.
    pub(crate) fn vault_path(&self, vault: &VaultId) -> anyhow::Result<PathBuf> {
        let is_file = matches!(self.vaults, Vaults::Files(_));
        let message = "this vault is in PostgreSQL, not in a file";
        anyhow::ensure!(is_file, CommandError::usage(message));
        Ok(vault.path(&self.path))
    }

    /// Returns the runtime on which vaults work, for calls that wait on their own.
    pub(crate) fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Waits for an operation of a vault.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}
