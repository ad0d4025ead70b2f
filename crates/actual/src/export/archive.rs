//! Reads and writes the ZIP archive that apps upload and import: the budget's database and its
//! metadata.

use std::io::{Cursor, Read, Write};

use serde_json::{Map, Value};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::export::error::{ARCHIVE_BYTES_MAX, ExportError};

const DATABASE: &str = "db.sqlite";
const METADATA: &str = "metadata.json";

/// The unpacked contents of an archive.
pub struct BudgetArchive {
    /// The budget's SQLite file; not necessarily one, because an archive may not come from an app.
    pub database: Vec<u8>,
    /// Everything that the apps store about a budget outside its rows, such as its name.
    pub metadata: Map<String, Value>,
}

impl BudgetArchive {
    /// Reads an archive from an app. Each of the two entries takes at most 500 MiB of memory.
    pub fn read(bytes: &[u8]) -> Result<Self, ExportError> {
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        let database = entry(&mut archive, DATABASE)?;
        let metadata = entry(&mut archive, METADATA)?;
        let metadata = serde_json::from_slice(&metadata);
        let metadata = metadata
            .map_err(|why| ExportError::damaged("cannot read the metadata of its file", why))?;
        Ok(Self { database, metadata })
    }

    /// Packs the database and the metadata into an archive.
    pub fn write(self) -> Result<Vec<u8>, ExportError> {
        let metadata = Value::Object(self.metadata).to_string().into_bytes();
        if (self.database.len() + metadata.len()) as u64 > ARCHIVE_BYTES_MAX {
            return Err(ExportError::TooLarge);
        }
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in [(DATABASE, self.database), (METADATA, metadata)] {
            archive.start_file(name, options).map_err(damaged)?;
            archive.write_all(&content).map_err(|why| damaged(why.into()))?;
        }
        Ok(archive.finish().map_err(damaged)?.into_inner())
    }
}

fn damaged(why: ZipError) -> ExportError {
    ExportError::damaged("its file is not an archive from an app", why)
}

/// Unpacks an entry, up to the limit and without trusting the length that the entry states.
fn entry(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Vec<u8>, ExportError> {
    let entry = archive.by_name(name).map_err(damaged)?;
    let mut content = Vec::new();
    let read = entry.take(ARCHIVE_BYTES_MAX + 1).read_to_end(&mut content);
    read.map_err(|why| damaged(why.into()))?;
    if content.len() as u64 > ARCHIVE_BYTES_MAX { Err(ExportError::TooLarge) } else { Ok(content) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            archive.start_file(*name, SimpleFileOptions::default()).unwrap();
            archive.write_all(content).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn an_archive_round_trips() {
        let metadata = json!({"id": "Home-1"}).as_object().unwrap().clone();
        let database = vec![7; 100_000];
        let written = BudgetArchive { database, metadata }.write().unwrap();
        assert!(written.len() < 10_000, "it is compressed");
        let read = BudgetArchive::read(&written).unwrap();
        assert_eq!(
            (read.database, json!(read.metadata)),
            (vec![7; 100_000], json!({"id": "Home-1"}))
        );
    }

    #[test]
    fn what_no_app_has_made_is_refused() {
        for bytes in [
            b"no archive".to_vec(),
            archive(&[(DATABASE, b"x")]),
            archive(&[(METADATA, b"{}")]),
            archive(&[(DATABASE, b"x"), (METADATA, b"[]")]),
        ] {
            assert!(matches!(BudgetArchive::read(&bytes), Err(ExportError::Damaged(_))));
        }
    }
}
