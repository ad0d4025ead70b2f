//! Key derivation from a password: argon2id, version 1.3, one lane, 32 bytes.
//!
//! # Invariants
//! - The memory that argon2 fills is zeroized, because the key can be computed from its last block.
//!
//! # Not here
//! - A bound on concurrent derivations → the server, because each needs its memory for its
//!   duration.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use zeroize::Zeroizing;

use super::key_wrap::WrappingKey;
use super::password::Password;
use crate::error::{Error, Result};

/// The length of a salt. RFC 9106 §3.1 recommends 16 bytes.
pub(crate) const SALT_BYTES: usize = 16;
/// The maximum of a stored cost. This program never writes a higher one, and accepting it would
/// allow filling the server's memory.
const MEMORY_KIB_MAX: u32 = 1 << 20;
const PASSES_MAX: u32 = 100;
/// The number of lanes. This program uses no threads for it, so more lanes would only help
/// attackers who do.
const LANES: u32 = 1;

/// The cost of hashing a password: for the server at each login, and for each guess of an attacker
/// who has stolen the accounts file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KdfCost {
    memory_kib: u32,
    passes: u32,
}

impl KdfCost {
    /// The default cost, 64 MiB and three passes: RFC 9106's second recommendation, on one lane. It
    /// took 0.14 to 0.24 s where measured.
    pub const DEFAULT: Self = Self { memory_kib: 64 << 10, passes: 3 };
    /// The minimum cost, 19 MiB and two passes: OWASP's minimum, for machines with little memory.
    pub const FLOOR: Self = Self { memory_kib: 19 << 10, passes: 2 };

    /// Creates a cost of 8 KiB for tests, which create many accounts. It is guessed in no time.
    pub const fn insecure_for_tests(passes: u32) -> Self {
        Self { memory_kib: Params::MIN_M_COST, passes }
    }

    pub(crate) fn from_columns(memory_kib: u32, passes: u32) -> Result<Self> {
        let is_sane = (Params::MIN_M_COST..=MEMORY_KIB_MAX).contains(&memory_kib)
            && (Params::MIN_T_COST..=PASSES_MAX).contains(&passes);
        is_sane
            .then_some(Self { memory_kib, passes })
            .ok_or(Error::Damaged { what: "a hashing cost" })
    }

    pub(crate) fn to_columns(self) -> (u32, u32) {
        (self.memory_kib, self.passes)
    }

    pub(crate) fn wrapping_key(self, password: &Password, salt: &[u8; SALT_BYTES]) -> WrappingKey {
        let params = Params::new(self.memory_kib, self.passes, LANES, None)
            .expect("constructors keep costs in argon2's range");
        let blocks = vec![Block::new(); params.block_count()].into_boxed_slice();
        let mut blocks = Zeroizing::new(blocks);
        let mut key = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into_with_memory(password.as_bytes(), salt, key.as_mut(), &mut **blocks)
            .expect("lengths are in argon2's range and the memory is what it asked for");
        WrappingKey::new(key)
    }
}

#[cfg(test)]
mod tests {
    use engine::DatabaseKey;

    use super::*;
    use crate::credentials::key_wrap::WrapContext;
    use crate::id::VaultId;

    const TESTS: KdfCost = KdfCost::insecure_for_tests(1);
    const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];

    fn is_same(a: &WrappingKey, b: &WrappingKey) -> bool {
        let vault = VaultId::generate();
        let wrapped = a.wrap(&DatabaseKey::generate(), &WrapContext::Account(&vault));
        b.unwrap(&wrapped, &WrapContext::Account(&vault)).is_some()
    }

    #[test]
    fn password_salt_and_cost_all_count() {
        let password = Password::parse("correct horse".to_owned()).unwrap();
        let other = Password::parse("correct horsf".to_owned()).unwrap();
        let key = TESTS.wrapping_key(&password, &SALT);
        assert!(is_same(&key, &TESTS.wrapping_key(&password, &SALT)));
        assert!(!is_same(&key, &TESTS.wrapping_key(&other, &SALT)));
        assert!(!is_same(&key, &TESTS.wrapping_key(&password, &[8; SALT_BYTES])));
        assert!(!is_same(&key, &KdfCost::insecure_for_tests(2).wrapping_key(&password, &SALT)));
    }

    #[test]
    fn a_cost_that_nobody_wrote_is_damage() {
        for (memory_kib, passes) in [(0, 1), (7, 1), (MEMORY_KIB_MAX + 1, 1), (8, 0), (8, 101)] {
            let cost = KdfCost::from_columns(memory_kib, passes);
            assert!(matches!(cost, Err(Error::Damaged { .. })), "{memory_kib} {passes}");
        }
        for cost in [KdfCost::DEFAULT, KdfCost::FLOOR, TESTS] {
            let (memory_kib, passes) = cost.to_columns();
            assert_eq!(KdfCost::from_columns(memory_kib, passes).unwrap(), cost);
        }
    }
}
