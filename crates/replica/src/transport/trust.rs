//! Chooses the certificate authorities for a server: those that the machine trusts, or those that
//! the user configured for this file.

use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use crate::error::{Error, Result};
use crate::meta::{self, ReplicaMetaKey};
use crate::replica::Replica;

/// The authorities that may have issued a server's certificate.
#[derive(Clone, Debug)]
pub struct TrustedRoots(RootCerts);

impl Default for TrustedRoots {
    /// Returns the authorities that the machine trusts: a small server may have a certificate of
    /// its owner.
    fn default() -> Self {
        Self(RootCerts::PlatformVerifier)
    }
}

impl TrustedRoots {
    /// Returns only the certificates in a PEM text.
    pub fn from_pem(pem: &str) -> Result<Self> {
        let mut certificates: Vec<Certificate<'static>> = Vec::new();
        for item in parse_pem(pem.as_bytes()) {
            match item {
                Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
                Ok(_) => {}
                Err(error) => return Err(Error::InvalidCertificate { reason: error.to_string() }),
            }
        }
        if certificates.is_empty() {
            let reason = "no `BEGIN CERTIFICATE` found".to_owned();
            return Err(Error::InvalidCertificate { reason });
        }
        Ok(Self(certificates.into()))
    }

    pub(crate) fn certificates(&self) -> RootCerts {
        self.0.clone()
    }
}

impl Replica {
    /// Returns the authorities that the user configured for this file's server, as a PEM text, or
    /// `None` for those of the machine.
    pub fn authorities(&self) -> Result<Option<String>> {
        meta::get(&self.db, ReplicaMetaKey::Authorities)
    }

    /// Stores authorities for this file's server, or `None` to trust those of the machine again.
    pub fn set_authorities(&self, pem: Option<&str>) -> Result<()> {
        let certificates = pem.map(certificates_of);
        self.transaction(|db| meta::set(db, ReplicaMetaKey::Authorities, certificates))
    }

    /// Returns the authorities for this file's server.
    pub fn trusted_roots(&self) -> Result<TrustedRoots> {
        let pem = self.authorities()?;
        pem.map_or_else(|| Ok(TrustedRoots::default()), |pem| TrustedRoots::from_pem(&pem))
    }
}

/// Extracts the certificates of a PEM text, so that a private key in the same text is not stored in
/// the file.
fn certificates_of(pem: &str) -> String {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let blocks = pem.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(END));
    blocks.flat_map(|(block, _)| [BEGIN, block, END, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use protocol::ErrorCode;

    use super::*;

    fn block(kind: &str) -> String {
        format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n")
    }

    #[test]
    fn a_key_beside_certificates_is_not_kept() {
        let certificate = block("CERTIFICATE");
        let text = format!("words\n{}{certificate}{}{certificate}", block("KEY"), block("KEY"));
        assert_eq!(certificates_of(&text), format!("{certificate}{certificate}"));
    }

    #[test]
    fn a_text_without_a_certificate_is_none() {
        let cut = "-----BEGIN CERTIFICATE-----\n=\n".to_owned();
        for text in [String::new(), "no certificate".into(), block("PUBLIC KEY"), cut] {
            let refused = TrustedRoots::from_pem(&text).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::InvalidCertificate, "{text:?}");
        }
    }
}
