//! A simulated disk after a power loss: it builds states that a log of file operations allows.
//!
//! Contents and names are separate, as in a file system. Everything that a flush of a file has
//! covered is certain; of later writes, the disk may have none, all, a prefix or some sectors. A
//! name is certain once its folder was flushed or, where the file system has a journal, once
//! anything was flushed. A failed flush leaves its pages clean and unwritten, as in Linux.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::random::SplitMixRng;

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;
/// The unit that the kernel writes.
const PAGE: usize = 4_096;

/// One record of the log that `faultio.c` writes.
#[derive(Clone, Debug)]
pub(crate) struct LogRecord {
    /// `C`reated, `W`ritten, `T`runcated, `S`ynced, `F`ailed to sync, `R`enamed, `U`nlinked, a
    /// `D`irectory; and `A`, which the test adds: work that was acknowledged.
    pub(crate) kind: u8,
    pub(crate) path: String,
    offset: u64,
    data: Vec<u8>,
}

impl LogRecord {
    /// Encodes a record of acknowledged work in the library's format.
    pub(crate) fn acknowledged(what: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(u32::from(b'A').to_ne_bytes());
        bytes.extend(u32::try_from(what.len()).unwrap().to_ne_bytes());
        bytes.extend([0; 16]);
        bytes.extend(what.as_bytes());
        bytes
    }

    /// Returns the record with the folder `from` replaced by `to`.
    pub(crate) fn moved(mut self, from: &str, to: &str) -> Self {
        let moved = |name: &str| name.strip_prefix(from).map(|rest| format!("{to}{rest}"));
        if let Some(path) = moved(&self.path) {
            self.path = path;
        }
        if self.kind == b'R' {
            let target = moved(str::from_utf8(&self.data).unwrap());
            self.data = target.map_or(self.data, String::into_bytes);
        }
        self
    }
}

/// Reads a whole log.
pub(crate) fn read_log(path: &Path) -> Vec<LogRecord> {
    let bytes = fs::read(path).unwrap();
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_at(24);
        let small = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap());
        let large = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().unwrap());
        let kind = u8::try_from(small(0)).unwrap();
        let (path, after) = after.split_at(small(4) as usize);
        let has_data = matches!(kind, b'W' | b'R');
        let length = if has_data { usize::try_from(large(16)).unwrap() } else { 0 };
        let (data, after) = after.split_at(length);
        let path = String::from_utf8(path.to_vec()).unwrap();
        records.push(LogRecord { kind, path, offset: large(8), data: data.to_vec() });
        rest = after;
    }
    records
}

/// The rule by which a file system makes names durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamePersistence {
    /// A name is durable only after a flush of its folder.
    Strict,
    /// Names are kept in a journal, in their order, and any flush writes it.
    Journal,
}

#[derive(Clone, Default)]
struct DiskFile {
    durable: Vec<u8>,
    cache: Vec<u8>,
    /// Operations since the last flush.
    pending: Vec<PendingOperation>,
    /// Whether a flush has failed: after that, a later write to a page writes the whole page.
    has_failed: bool,
}

#[derive(Clone)]
enum PendingOperation {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone)]
enum NameChange {
    Link(String, usize),
    Unlink(String),
    Rename(String, String),
}

#[derive(Clone)]
pub(crate) struct SimulatedDisk {
    root: String,
    names: NamePersistence,
    files: Vec<DiskFile>,
    /// The names as the program sees them.
    seen: BTreeMap<String, usize>,
    certain: BTreeMap<String, usize>,
    pending: Vec<NameChange>,
    folders: Vec<String>,
}

impl SimulatedDisk {
    /// Reads a folder, all of it certain. The log must name it by the same path.
    pub(crate) fn of(folder: &Path, names: NamePersistence) -> Self {
        let root = folder.to_str().unwrap().to_owned();
        let mut disk = Self {
            root: root.clone(),
            names,
            files: Vec::new(),
            seen: BTreeMap::new(),
            certain: BTreeMap::new(),
            pending: Vec::new(),
            folders: vec![root],
        };
        disk.add(folder);
        disk.certain.clone_from(&disk.seen);
        disk
    }

    fn add(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap().to_owned();
            if path.is_dir() {
                self.folders.push(name);
                self.add(&path);
            } else if !name.ends_with("-shm") {
                let content = fs::read(&path).unwrap();
                let file =
                    DiskFile { durable: content.clone(), cache: content, ..DiskFile::default() };
                self.files.push(file);
                self.seen.insert(name, self.files.len() - 1);
            }
        }
    }

    pub(crate) fn apply(&mut self, record: &LogRecord) {
        let LogRecord { kind, path, offset, data } = record;
        let offset = usize::try_from(*offset).unwrap();
        let file = self.seen.get(path).copied();
        match (kind, file) {
            (b'C', _) => {
                self.files.push(DiskFile::default());
                let file = self.files.len() - 1;
                self.seen.insert(path.clone(), file);
                self.pending.push(NameChange::Link(path.clone(), file));
            }
            (b'W', Some(file)) => self.files[file].write(offset, data),
            (b'T', Some(file)) => self.files[file].truncate(offset),
            (b'S', Some(file)) => {
                self.files[file].flush();
                if self.names == NamePersistence::Journal {
                    self.commit_names(|_| true);
                }
            }
            (b'S', None) if self.folders.contains(path) => match self.names {
                NamePersistence::Journal => self.commit_names(|_| true),
                NamePersistence::Strict => self.commit_names(|name| parent(name) == path),
            },
            (b'F', Some(file)) => self.files[file].fail(),
            (b'R', Some(file)) => {
                let to = String::from_utf8(data.clone()).unwrap();
                self.seen.remove(path);
                self.seen.insert(to.clone(), file);
                self.pending.push(NameChange::Rename(path.clone(), to));
            }
            (b'U', Some(_)) => {
                self.seen.remove(path);
                self.pending.push(NameChange::Unlink(path.clone()));
            }
            (b'D', _) => self.folders.push(path.clone()),
            // The file no longer has a name, or the folder is not watched.
            _ => {}
        }
    }

    /// Makes the changes of the matching names certain.
    fn commit_names(&mut self, is_concerned: impl Fn(&str) -> bool) {
        let pending = std::mem::take(&mut self.pending);
        for change in pending {
            let name = match &change {
                NameChange::Link(name, _) | NameChange::Unlink(name) => name,
                NameChange::Rename(_, to) => to,
            };
            if is_concerned(name) {
                change.apply(&mut self.certain);
            } else {
                self.pending.push(change);
            }
        }
    }

    /// Writes an image of a state that the disk may have now into a folder.
    pub(crate) fn write_image(&self, to: &Path, random: &mut SplitMixRng) {
        let mut names = self.certain.clone();
        let count = match self.names {
            NamePersistence::Journal => random.below(self.pending.len() as u64 + 1),
            NamePersistence::Strict => random.below(2) * self.pending.len() as u64,
        };
        for change in &self.pending[..usize::try_from(count).unwrap()] {
            change.apply(&mut names);
        }
        self.write(to, &names, |file| file.image(random));
    }

    /// Writes an image that contains only what is certain.
    pub(crate) fn write_certain_image(&self, to: &Path) {
        self.write(to, &self.certain, |file| file.durable.clone());
    }

    fn write(
        &self,
        to: &Path,
        names: &BTreeMap<String, usize>,
        mut content: impl FnMut(&DiskFile) -> Vec<u8>,
    ) {
        let place = |name: &str| -> PathBuf {
            to.join(name.strip_prefix(&self.root).unwrap().trim_start_matches('/'))
        };
        for folder in &self.folders {
            fs::create_dir_all(place(folder)).unwrap();
        }
        for (name, file) in names {
            fs::write(place(name), content(&self.files[*file])).unwrap();
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Link(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Unlink(name) => drop(names.remove(name)),
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }
}

fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl DiskFile {
    fn write(&mut self, offset: usize, data: &[u8]) {
        put(&mut self.cache, offset, data);
        let (start, end) = if self.has_failed {
            let end = (offset + data.len()).next_multiple_of(PAGE).min(self.cache.len());
            (offset / PAGE * PAGE, end)
        } else {
            (offset, offset + data.len())
        };
        self.pending.push(PendingOperation::Write(start, self.cache[start..end].to_vec()));
    }

    fn truncate(&mut self, length: usize) {
        self.cache.resize(length, 0);
        self.pending.push(PendingOperation::Truncate(length));
    }

    fn flush(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            pending.apply(&mut self.durable);
        }
    }

    /// Drops the writes since the last flush: they never reach the disk, unless their page is
    /// written to again.
    fn fail(&mut self) {
        self.has_failed = true;
        self.pending.retain(|pending| matches!(pending, PendingOperation::Truncate(_)));
    }

    /// Returns a content that a power loss may leave.
    fn image(&self, random: &mut SplitMixRng) -> Vec<u8> {
        let mut content = self.durable.clone();
        match random.below(4) {
            0 => {}
            1 => self.pending.iter().for_each(|pending| pending.apply(&mut content)),
            2 => {
                let count = random.below(self.pending.len() as u64 + 1);
                let beginning = &self.pending[..usize::try_from(count).unwrap()];
                for pending in beginning {
                    pending.apply(&mut content);
                }
            }
            _ => {
                for pending in &self.pending {
                    pending.tear(&mut content, random);
                }
            }
        }
        content
    }
}

impl PendingOperation {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(offset, data) => put(content, *offset, data),
            Self::Truncate(length) => content.resize(*length, 0),
        }
    }

    /// Applies a random choice of the operation's sectors.
    fn tear(&self, content: &mut Vec<u8>, random: &mut SplitMixRng) {
        match self {
            Self::Write(offset, data) => {
                let mut at = 0;
                while at < data.len() {
                    let end = ((offset + at) / SECTOR * SECTOR + SECTOR - offset).min(data.len());
                    if random.below(2) == 0 {
                        put(content, offset + at, &data[at..end]);
                    }
                    at = end;
                }
            }
            Self::Truncate(_) if random.below(2) == 0 => {}
            Self::Truncate(_) => self.apply(content),
        }
    }
}

fn put(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}
