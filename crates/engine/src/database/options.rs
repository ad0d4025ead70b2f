//! What a caller says of a database when it opens it.

use crate::damage::DamagePolicy;
use crate::open::FileEncryption;
use crate::open::migrate::Migration;
use crate::open::profile::Profile;
use crate::write::writer::WriterLimits;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The key, if it has one.
    pub encryption: FileEncryption,
    /// Its settings.
    pub profile: &'static Profile,
    /// Its schema's history; empty if the caller looks after the schema.
    pub migrations: &'static [Migration],
    /// Whether a missing file is created.
    pub create: bool,
    /// No other process writes to the file. Reads that follow on each other then share a snapshot
    /// while this process writes nothing either; what another process does write they see up to
    /// 10 ms late. And maintenance may put another file in its place.
    pub is_sole_writer: bool,
    /// What is done about damage.
    pub damage: DamagePolicy,
    /// The writer's limits.
    pub limits: WriterLimits,
    /// Read-only connections, each opened when it is first needed; past them a read waits for
    /// another to end.
    pub readers_count_max: usize,
}

impl DatabaseOptions {
    /// The `server` profile, no migrations, an existing file that others may write to and that is
    /// not looked at for damage, default limits, four readers.
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
