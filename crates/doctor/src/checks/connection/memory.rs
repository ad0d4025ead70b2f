//! Judges the page cache and temporary files against the memory that this machine has.

use indicatif::DecimalBytes;

use super::facts::ConnectionFacts;
use crate::catalogue::finding_code::FindingCode;
use crate::report::finding::{DoctorFinding, Fix};

const KIB: u64 = 1_024;
const MIB: u64 = 1_024 * KIB;
/// The minimum ratio of content to cache for a finding. Such a file is read from the disk, or
/// decrypted, repeatedly.
const CONTENT_PER_CACHE: u64 = 8;
/// The minimum size of the content. Smaller files fit into the system's own cache.
const CONTENT_BYTES_MIN: u64 = 64 * MIB;
/// The divisor for the share of the available memory that one cache may take.
const MEMORY_SHARE: u64 = 16;
/// The largest cache that is suggested. A larger one is worthwhile only if a measurement shows it.
const CACHE_BYTES_MAX: u64 = 256 * MIB;
/// The factor by which a suggested cache must be larger than the current one to matter.
const GAIN: u64 = 4;

/// Returns the size of the page cache. `cache_size` counts pages or, if it is negative, KiB.
fn cache_bytes(facts: &ConnectionFacts<'_>) -> Option<u64> {
    let size = facts.settings.number("cache_size")?;
    let unit = if size < 0 { KIB } else { facts.page_bytes };
    Some(size.unsigned_abs().saturating_mul(unit))
}

pub(super) fn cache_small(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let (cache, memory, content) = (cache_bytes(facts)?, facts.memory_bytes?, facts.content_bytes);
    let mapped = facts.settings.number("mmap_size").and_then(|size| u64::try_from(size).ok());
    let is_mapped = !facts.is_encrypted && mapped.is_some_and(|mapped| mapped >= content);
    let better = content.min(memory / MEMORY_SHARE).min(CACHE_BYTES_MAX) / MIB * MIB;
    let is_small = content >= CONTENT_BYTES_MIN
        && content >= cache.saturating_mul(CONTENT_PER_CACHE)
        && better >= cache.saturating_mul(GAIN);
    (is_small && !is_mapped).then(|| {
        let what = format!(
            "the page cache is {}, the content of the file {}",
            DecimalBytes(cache),
            DecimalBytes(content)
        );
        let evidence = format!(
            "recommended: {}, the smallest of the content, a sixteenth of the memory available now \
             ({}), and 256 MiB",
            DecimalBytes(better),
            DecimalBytes(memory)
        );
        let fix = facts.set("cache_size", &format!("-{}", better / KIB));
        let fix = format!(
            "{fix} (divide this by the number of connections that the program keeps open). `warren \
             tune` measures the gain."
        );
        facts
            .finding(FindingCode::CacheSmall, "cache_size", what)
            .evidence(evidence)
            .detail("cache_bytes", cache)
            .detail("content_bytes", content)
            .detail("proposed_bytes", better)
            .with_fix(Fix::Advice(fix))
            .impact(if facts.is_encrypted {
                "Pages outside the cache are decrypted each time they are read."
            } else {
                "Pages outside the cache are copied from the system's cache or read from the disk."
            })
    })
}

pub(super) fn cache_large(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let (cache, memory) = (cache_bytes(facts)?, facts.memory_bytes?);
    let filled = cache.min(facts.content_bytes);
    (filled > memory / 2).then(|| {
        let (filled_text, memory_text) = (DecimalBytes(filled), DecimalBytes(memory));
        let what = format!(
            "the page cache of one connection may take {filled_text} of the {memory_text} of \
             available memory"
        );
        let better = (memory / MEMORY_SHARE).min(CACHE_BYTES_MAX) / MIB * MIB;
        facts
            .finding(FindingCode::CacheLarge, "cache_size", what)
            .evidence(format!("content of the file: {}", DecimalBytes(facts.content_bytes)))
            .evidence(format!("memory available on this machine now: {memory_text}"))
            .detail("cache_bytes", cache)
            .detail("available_bytes", memory)
            .with_fix(facts.set("cache_size", &format!("-{}", better.max(2 * MIB) / KIB)))
            .impact(
                "Each connection has its own cache. When memory runs out, the system kills a \
                 process.",
            )
    })
}

pub(super) fn temp_in_memory(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    let (memory, content) = (facts.memory_bytes?, facts.content_bytes);
    let directory = facts.temp.as_ref().filter(|(_, is_memory)| *is_memory);
    let place = match directory {
        _ if facts.settings.keeps_temp_in_memory() => "temp_store = MEMORY".to_owned(),
        Some((path, _)) => format!("{} is in memory", path.display()),
        None => return None,
    };
    facts.settings.number("temp_store")?;
    (content > memory / 4).then(|| {
        let (content, memory) = (DecimalBytes(content), DecimalBytes(memory));
        let what =
            format!("a VACUUM would take {content} of the {memory} of available memory: {place}");
        let fix = "For VACUUM, set temp_store = FILE, and SQLITE_TMPDIR to a directory on a disk; \
                    or use `warren vacuum`, which needs neither.";
        facts
            .finding(FindingCode::TempInMemory, "temp_store", what)
            .evidence(format!("content of the file: {content}; VACUUM writes a copy of it"))
            .detail("needed_bytes", facts.content_bytes)
            .detail("available_bytes", facts.memory_bytes)
            .with_fix(Fix::Advice(fix.to_owned()))
            .impact("VACUUM fails, or the system kills a process.")
    })
}

pub(super) fn temp_unencrypted(facts: &ConnectionFacts<'_>) -> Option<DoctorFinding> {
    facts.settings.number("temp_store")?;
    let writes = facts.is_encrypted && !facts.settings.keeps_temp_in_memory();
    writes.then(|| {
        let what = "temporary files of this encrypted file are written to the disk";
        facts
            .finding(FindingCode::TempUnencrypted, "temp_store", what)
            .with_fix(facts.set("temp_store", "MEMORY"))
            .impact(
                "SQLite3 Multiple Ciphers before version 2.6 writes them unencrypted: rows that \
                 are sorted, and the whole content at VACUUM.",
            )
    })
}
