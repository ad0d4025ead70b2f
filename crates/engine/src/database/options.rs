//! Defines the options with which a database is opened.

use crate::damage::DamagePolicy;
use crate::open::FileEncryption;
use crate::open::migrate::Migration;
use crate::open::profile::Profile;
use crate::write::writer::WriterLimits;

/// The options with which a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The encryption of the file, with the key if it has one.
    pub encryption: FileEncryption,
    /// The profile, which sets the PRAGMAs of each connection.
    pub profile: &'static Profile,
    /// The history of the schema; empty if the caller manages the schema.
    pub migrations: &'static [Migration],
    /// Whether a missing file is created.
    pub create: bool,
    /// Whether no other process writes to the file. If so, successive reads share a snapshot while
    /// this process writes nothing, and see the writes of another process up to 10 ms late. In
    /// addition, maintenance may replace the file.
    pub is_sole_writer: bool,
    /// The reaction to damage in the file.
    pub damage: DamagePolicy,
    /// The limits of the database's writer.
    pub limits: WriterLimits,
    /// The maximum number of read-only connections, each opened when it is first needed; beyond it,
    /// a read waits for another to end.
    pub readers_count_max: usize,
}

impl DatabaseOptions {
    /// Creates options with the `server` profile, no migrations, default limits and four readers,
    /// for an existing file that others may write to and that is not scanned for damage.
    pub fn new(encryption: FileEncryption) -> Self {
        Self {
            encryption,
            profile: Profile::SERVER,
            migrations: &[],
            create: false,
            is_sole_writer: false,
            damage: DamagePolicy::Ignore,
            limits: WriterLimits::default(),
            readers_count_max: 4,
        }
    }
}
