//! Credentials: logins, passwords and tokens, and the keys that they wrap.

pub(crate) mod kdf;
pub(crate) mod key_wrap;
pub(crate) mod login;
pub(crate) mod mail_password;
pub(crate) mod password;
pub(crate) mod password_record;
pub(crate) mod random;
pub(crate) mod recovery_secret;
pub(crate) mod token;
