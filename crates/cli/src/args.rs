//! Defines arguments that several commands share, and reads the inputs that they name.

pub(crate) mod argument_help;
pub(crate) mod data_dir;
pub(crate) mod key_args;
pub(crate) mod password;
pub(crate) mod permissions_warning;
pub(crate) mod postgres_args;
