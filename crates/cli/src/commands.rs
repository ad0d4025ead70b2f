//! One file or folder for each command, named as the command.

pub(crate) mod account;
pub(crate) mod actual_budget;
pub(crate) mod backup;
#[cfg(feature = "bench")]
pub(crate) mod benchmark;
pub(crate) mod completions;
pub(crate) mod conflicts;
pub(crate) mod device;
pub(crate) mod doctor;
pub(crate) mod erase;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod json_schema;
pub(crate) mod man;
#[cfg(not(feature = "bench"))]
pub(crate) mod not_built;
pub(crate) mod recover;
pub(crate) mod recovery_phrase;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod storage;
pub(crate) mod sync;
pub(crate) mod track;
#[cfg(feature = "bench")]
pub(crate) mod tune;
pub(crate) mod vacuum;
