//! Caches compiled packages of the registry outside the clone:
//! `${WARREN_CACHE:-~/.cache/warren}/cargo`.
//!
//! ```text
//! cargo/KEY/                 KEY: the compiler and every package of the registry in Cargo.lock
//!   debug/.fingerprint/serde-0123456789abcdef/   one unit (a crate, compiled in one way): last
//!   debug/build/serde-0123456789abcdef/          (debug: any of cargo's profile directories)
//!   debug/deps/libserde-0123456789abcdef.rlib
//! ```
//!
//! Cargo names a unit after a hash of all its inputs, the same in every clone. For a package from
//! the registry it checks only that the unit exists and is not older than its inputs. So units may
//! be copied into a new clone's `target`, times included, before anything is compiled there:
//! `.ci/compiled.sh` does this, and this module saves the units. Units of the workspace may not be
//! copied: cargo compares their times with those of the sources.
//!
//! # Invariants
//! - A unit in the cache is complete: its fingerprint is written last, and without one it does not
//!   count.
//! - The build works without the cache: missing units are compiled.
//! - At most [`KEYS_MAX`] keys of [`KEY_BYTES_MAX`] bytes each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::programs::output;
use crate::tidy;

/// The maximum number of keys: this clone's lock file, another branch's, and one that just changed.
const KEYS_MAX: usize = 3;

/// The size limit of a key: three times what all checks of one lock file and `make run` need.
const KEY_BYTES_MAX: u64 = 6 << 30;

/// The maximum depth of a profile's directory below `target`, such as `debug` or
/// `wasm32-unknown-unknown/wasm`.
const PROFILE_DEPTH_MAX: usize = 3;

/// The workspace's crate whose build script compiles SQLite, and detects on its own whether it
/// must.
const COMPILES_C: &str = "sqlite3mc-sys";

const HASH_DIGITS: usize = 16;

/// Copies the units of `target` into the cache, and removes the least recently used keys.
pub(crate) fn save(root: &Path) -> Result<()> {
    let Some(cache) = BuildCache::open(root)? else { return Ok(()) };
    cache.lock.lock().context("cannot lock the cache")?;
    cache.copy(&root.join("target"), &cache.folder)?;
    if bytes_below(&cache.folder)? > KEY_BYTES_MAX {
        fs::remove_dir_all(&cache.folder)?;
    }
    remove_oldest(cache.folder.parent().context("a key has a folder")?, KEYS_MAX)
}

struct BuildCache {
    folder: PathBuf,
    /// The lock file next to the directory. Its time records when the key was last used.
    lock: File,
    /// The names of the workspace's packages.
    own: BTreeSet<String>,
}

impl BuildCache {
    /// Opens the cache; `None` if it has no writable directory.
    fn open(root: &Path) -> Result<Option<Self>> {
        let Some(folder) = cache_folder(root)? else { return Ok(None) };
        let lock = folder.with_extension("lock");
        let made = fs::create_dir_all(&folder).and_then(|()| File::create(&lock));
        let lock = made.with_context(|| folder.display().to_string())?;
        lock.set_modified(now())?;
        Ok(Some(Self { folder, lock, own: own_packages(root)? }))
    }

    /// Copies the units that `to` lacks, and returns their number.
    fn copy(&self, from: &Path, to: &Path) -> Result<usize> {
        let mut count = 0;
        for profile in profiles(from, PROFILE_DEPTH_MAX)? {
            let target = to.join(profile.strip_prefix(from)?);
            count += self.copy_profile(&profile, &target)?;
        }
        Ok(count)
    }

    fn copy_profile(&self, from: &Path, to: &Path) -> Result<usize> {
        let deps = by_hash(&from.join("deps"))?;
        let mut count = 0;
        for unit in entries(&from.join(".fingerprint"))? {
            let name = name_of(&unit);
            let Some((package, hash)) = split(&name) else { continue };
            let fingerprint = to.join(".fingerprint").join(&name);
            // An interrupted build leaves an empty directory.
            let is_whole = !entries(&unit)?.is_empty();
            if self.own.contains(package) || fingerprint.exists() || !is_whole {
                continue;
            }
            for file in deps.get(hash).into_iter().flatten() {
                copy_file(file, &to.join("deps").join(name_of(file)))?;
            }
            copy_all(&from.join("build").join(&name), &to.join("build").join(&name))?;
            let part = to.join(format!("{name}.part"));
            copy_all(&unit, &part)?;
            fs::create_dir_all(to.join(".fingerprint"))?;
            fs::rename(&part, &fingerprint).with_context(|| fingerprint.display().to_string())?;
            count += 1;
        }
        for built in entries(&from.join("build"))? {
            let name = name_of(&built);
            if split(&name).is_some_and(|(package, _)| package == COMPILES_C) {
                copy_archive(&built.join("out"), &to.join("build").join(&name).join("out"))?;
            }
        }
        Ok(count)
    }
}

/// Returns the directory of this clone's key as `.ci/compiled.sh` prints it; `None` if there is
/// none.
fn cache_folder(root: &Path) -> Result<Option<PathBuf>> {
    let printed = output(Command::new(root.join(".ci/compiled.sh")).arg("place"))?;
    Ok(Some(printed.trim()).filter(|path| !path.is_empty()).map(PathBuf::from))
}

fn own_packages(root: &Path) -> Result<BTreeSet<String>> {
    let metadata = tidy::metadata(root)?;
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    Ok(packages.iter().filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect())
}

/// Returns the directories in which cargo keeps units.
fn profiles(folder: &Path, depth: usize) -> Result<Vec<PathBuf>> {
    if folder.join(".fingerprint").is_dir() {
        return Ok(vec![folder.to_owned()]);
    }
    if depth == 0 {
        return Ok(Vec::new());
    }
    let below = entries(folder)?.into_iter().filter(|path| path.is_dir() && !path.is_symlink());
    let below: Result<Vec<_>> = below.map(|path| profiles(&path, depth - 1)).collect();
    Ok(below?.concat())
}

/// Splits `serde-0123456789abcdef` into `serde` and the hash.
fn split(unit: &str) -> Option<(&str, &str)> {
    let (package, hash) = unit.rsplit_once('-')?;
    let is_hash = hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some((package, hash))
}

/// Returns the compiled files by the hashes in their names: `libserde-0123456789abcdef.rlib`.
fn by_hash(deps: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>> {
    let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in entries(deps)? {
        let name = name_of(&file);
        let stem = name.split_once('.').map_or(&*name, |(stem, _)| stem);
        if let Some((_, hash)) = split(stem) {
            files.entry(hash.to_owned()).or_default().push(file);
        }
    }
    Ok(files)
}

/// Copies a directory, at any depth, if it exists.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for entry in entries(from)? {
        let copy = to.join(name_of(&entry));
        if entry.is_dir() { copy_all(&entry, &copy)? } else { copy_file(&entry, &copy)? }
    }
    Ok(())
}

/// Copies SQLite's library, unless the same one, compiled in the same way, exists. The file that
/// describes how it was compiled is written last.
fn copy_archive(from: &Path, to: &Path) -> Result<()> {
    const ARCHIVE: &str = "libsqlite3mc.a";
    const MADE_IN: &str = "way.txt";
    let way = |folder: &Path| fs::read(folder.join(MADE_IN)).ok();
    if way(from).is_none() || way(from) == way(to) {
        return Ok(());
    }
    if way(to).is_some() {
        fs::remove_file(to.join(MADE_IN))?;
    }
    copy_file(&from.join(ARCHIVE), &to.join(ARCHIVE))?;
    copy_file(&from.join(MADE_IN), &to.join(MADE_IN))
}

/// Copies a file with its time, which cargo compares with the times of the file's inputs.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    let modified = fs::metadata(from)?.modified()?;
    File::options().write(true).open(to)?.set_times(FileTimes::new().set_modified(modified))?;
    Ok(())
}

fn remove_oldest(cache: &Path, keys_max: usize) -> Result<()> {
    let locks = entries(cache)?.into_iter().filter(|path| path.extension().is_some());
    let mut locks: Vec<_> =
        locks.map(|lock| Ok((fs::metadata(&lock)?.modified()?, lock))).collect::<Result<_>>()?;
    locks.sort();
    locks.reverse();
    for (_, lock) in locks.iter().skip(keys_max) {
        // Another process that holds the lock needs these files.
        if File::open(lock)?.try_lock().is_ok() {
            fs::remove_dir_all(lock.with_extension(""))?;
            fs::remove_file(lock)?;
        }
    }
    Ok(())
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let sizes: Result<Vec<u64>> = entries(folder)?
        .iter()
        .map(|path| if path.is_dir() { bytes_below(path) } else { Ok(fs::metadata(path)?.len()) })
        .collect();
    Ok(sizes?.iter().sum())
}

/// Returns the entries of a directory; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let read = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    read.map(|entry| Ok(entry?.path())).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[expect(clippy::disallowed_methods, reason = "says when a key was last used")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache, and `target` directories of two clones.
    struct BuildCacheFixture {
        folder: tempfile::TempDir,
        cache: BuildCache,
    }

    impl BuildCacheFixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let lock = File::create(folder.path().join("lock")).unwrap();
            let own = ["warren", COMPILES_C].map(str::to_owned).into();
            let cache = BuildCache { folder: folder.path().join("cache"), lock, own };
            Self { folder, cache }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        /// Writes the files that cargo leaves for a package, into the first clone.
        fn compile(&self, package: &str, digit: &str) {
            let hash = digit.repeat(HASH_DIGITS);
            for file in [
                format!("deps/lib{package}-{hash}.rlib"),
                format!("deps/lib{package}-{hash}.rmeta"),
                format!("build/{package}-{hash}/out/libsqlite3mc.a"),
                format!("build/{package}-{hash}/out/way.txt"),
                format!("build/{package}-{hash}/output"),
                format!(".fingerprint/{package}-{hash}/lib-{package}"),
            ] {
                let path = self.at("first/debug").join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, package).unwrap();
                let time = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
                File::options().write(true).open(&path).unwrap().set_times(time).unwrap();
            }
        }

        fn copy(&self, from: &str, to: &str) -> usize {
            self.cache.copy(&self.at(from), &self.at(to)).unwrap()
        }
    }

    #[test]
    fn another_clone_gets_what_came_from_the_registry_with_its_times() {
        let bed = BuildCacheFixture::new();
        bed.compile("serde", "a");
        bed.compile("warren", "b");
        bed.compile(COMPILES_C, "c");
        let interrupted = format!("first/debug/.fingerprint/bytes-{}", "d".repeat(HASH_DIGITS));
        fs::create_dir(bed.at(&interrupted)).unwrap();
        assert_eq!(bed.copy("first", "cache"), 1);
        assert_eq!(bed.copy("cache", "second"), 1);
        let of = |package: &str, digit: &str| format!("{package}-{}", digit.repeat(HASH_DIGITS));
        let library = bed.at(&format!("second/debug/deps/lib{}.rlib", of("serde", "a")));
        assert_eq!(fs::read(&library).unwrap(), b"serde");
        assert_eq!(fs::metadata(&library).unwrap().modified().unwrap(), SystemTime::UNIX_EPOCH);
        let units = entries(&bed.at("second/debug/.fingerprint")).unwrap();
        assert_eq!(units, [bed.at("second/debug/.fingerprint").join(of("serde", "a"))]);
        let built = bed.at("second/debug/build").join(of(COMPILES_C, "c"));
        assert!(built.join("out/libsqlite3mc.a").exists() && !built.join("output").exists());
        assert_eq!(bed.copy("cache", "second"), 0, "it is there");
    }

    #[test]
    fn an_archive_that_was_made_otherwise_takes_the_place_of_the_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let out = |clone: &str| folder.path().join(clone);
        for (clone, archive, way) in [("a", "1", "-O2"), ("b", "2", "-O3")] {
            fs::create_dir(out(clone)).unwrap();
            fs::write(out(clone).join("libsqlite3mc.a"), archive).unwrap();
            fs::write(out(clone).join("way.txt"), way).unwrap();
        }
        copy_archive(&out("a"), &out("b")).unwrap();
        for (file, expected) in [("libsqlite3mc.a", "1"), ("way.txt", "-O2")] {
            assert_eq!(fs::read_to_string(out("b").join(file)).unwrap(), expected);
        }
        fs::remove_file(out("a").join("way.txt")).unwrap();
        fs::write(out("a").join("libsqlite3mc.a"), "half").unwrap();
        copy_archive(&out("a"), &out("b")).unwrap();
        assert_eq!(fs::read_to_string(out("b").join("libsqlite3mc.a")).unwrap(), "1");
    }

    #[test]
    fn a_unit_without_its_fingerprint_is_copied_anew() {
        let bed = BuildCacheFixture::new();
        bed.compile("serde", "a");
        let half = bed.at("cache/debug/deps").join(format!("libserde-{}.rlib", "a".repeat(16)));
        fs::create_dir_all(half.parent().unwrap()).unwrap();
        fs::write(&half, "ser").unwrap();
        assert_eq!(bed.copy("cache", "second"), 0);
        assert_eq!(bed.copy("first", "cache"), 1);
        assert_eq!(fs::read(&half).unwrap(), b"serde");
    }

    /// Runs the script in a clone that has only the files that it reads, with a cache of its own.
    fn restore(clone: &Path, cache: &Path) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        fs::create_dir_all(clone.join(".ci")).unwrap();
        for file in [".ci/compiled.sh", "Cargo.lock"] {
            fs::copy(root.join(file), clone.join(file)).unwrap();
        }
        // bash reads the script, because another test's fork may still hold the new file open, and
        // then executing it fails ("text file busy").
        let mut bash = Command::new("bash");
        bash.arg(clone.join(".ci/compiled.sh")).arg("restore").env("WARREN_CACHE", cache);
        let output = bash.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    #[test]
    fn a_clone_gets_what_was_used_last_and_nothing_from_an_empty_cache() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        restore(&folder.path().join("first"), &cache);
        assert!(!folder.path().join("first/target").exists());
        for (key, seconds) in [("newer", 2), ("older", 1)] {
            fs::create_dir_all(cache.join("cargo").join(key).join("debug")).unwrap();
            fs::write(cache.join("cargo").join(key).join("debug/key"), key).unwrap();
            let lock = File::create(cache.join("cargo").join(key).with_extension("lock")).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            lock.set_modified(time).unwrap();
        }
        restore(&folder.path().join("second"), &cache);
        let copied = fs::read_to_string(folder.path().join("second/target/debug/key")).unwrap();
        assert_eq!(copied, "newer");
    }

    #[test]
    fn the_key_not_used_for_longest_goes() {
        let folder = tempfile::tempdir().unwrap();
        for (name, seconds) in [("old", 1), ("held", 2), ("new", 3)] {
            fs::create_dir(folder.path().join(name)).unwrap();
            let lock = File::create(folder.path().join(name).with_extension("lock")).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            lock.set_modified(time).unwrap();
        }
        let held = File::open(folder.path().join("held.lock")).unwrap();
        held.lock_shared().unwrap();
        remove_oldest(folder.path(), 1).unwrap();
        let left: BTreeSet<_> =
            entries(folder.path()).unwrap().iter().map(|path| name_of(path)).collect();
        let expected = ["held", "held.lock", "new", "new.lock"].map(str::to_owned);
        assert_eq!(left, expected.into());
    }
}
