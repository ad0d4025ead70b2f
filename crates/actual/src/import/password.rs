//! Checks a password against the hash that the published server stored.

use argon2::{Argon2, PasswordVerifier};

/// Checks a password like the published server: its hashes are argon2 or, from older releases,
/// bcrypt, which reads no more than 72 bytes. A hash that cannot be read matches no password.
pub(super) fn is_right(password: &str, hash: &str) -> bool {
    if hash.starts_with("$argon2") {
        Argon2::default().verify_password(password.as_bytes(), hash).is_ok()
    } else {
        bcrypt::verify(password, hash).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::is_right;

    /// The packages `argon2` 0.44 and `bcrypt` 6, which the published server uses, created these
    /// hashes.
    #[test]
    fn both_kinds_of_hashes() {
        let argon2 = "$argon2id$v=19$m=47104,t=1,p=1$JpHJQSv2O4+4DC9GDsQ4vw$\
                      wLO2p/cfWTopjuKP0AO651G6ef3+FZHQwnH5jr69pvw";
        let bcrypt = "$2b$05$eg1vLBSkqLI8YdF5NDDTxeC6PkMikOzg5NfZk/cT2Ehft968hOO1i";
        for hash in [argon2, bcrypt] {
            assert!(is_right("correct horse ☂", hash), "{hash}");
            assert!(!is_right("correct horse", hash), "{hash}");
            assert!(!is_right("", hash), "{hash}");
        }
        for hash in ["", "correct horse ☂", "$argon2id$", "$2b$10$"] {
            assert!(!is_right("correct horse ☂", hash), "{hash}");
        }
    }
}
