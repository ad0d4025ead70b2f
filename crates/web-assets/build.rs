//! Writes tables of the files of `target/web/site` and `target/web/actual`: `$OUT_DIR/site.rs`,
//! `$OUT_DIR/actual.rs`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Number of digest characters that esbuild or `cargo xtask web` puts before the extension:
/// `main-2FQ4XK7A.js`.
const DIGEST_CHARACTERS: usize = 8;

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    write_table("site")?;
    write_table("actual")
}

/// Writes the table of the files of one folder.
fn write_table(name: &str) -> io::Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = workspace.join("target/web").join(name);
    // Cargo would run this script at each build if the folder did not exist.
    fs::create_dir_all(&folder)?;
    println!("cargo:rerun-if-changed={}", folder.display());
    let folder = folder.canonicalize()?;
    let mut files = files_below(&folder)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files.iter().filter(|file| !is_brotli(file)) {
        write_row(&mut table, &folder, file)?;
    }
    table.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join(format!("{name}.rs")), table)
}

fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

fn is_brotli(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "br")
}

fn write_row(table: &mut String, folder: &Path, file: &Path) -> io::Result<()> {
    let name = file.strip_prefix(folder).expect("it was found there");
    let name = format!("/{}", text(name)?.replace('\\', "/"));
    let bytes = fs::read(file)?;
    let place = text(file)?;
    let brotli = format!("{place}.br");
    let is_smaller = |length: u64| length < bytes.len() as u64;
    let has_brotli = fs::metadata(&brotli).is_ok_and(|metadata| is_smaller(metadata.len()));
    let brotli = has_brotli.then(|| format!("include_bytes!({brotli:?})"));
    let brotli = brotli.map_or_else(|| "None".to_owned(), |brotli| format!("Some({brotli})"));
    let content_type = content_type(file)?;
    let digest = blake3::hash(&bytes).to_hex();
    let (digest, is_immutable) = (&digest[..16], is_immutable(&name));
    writeln!(
        table,
        "    Asset {{ path: {name:?}, bytes: include_bytes!({place:?}), brotli: {brotli}, \
         content_type: {content_type:?}, digest: {digest:?}, is_immutable: {is_immutable} }},",
    )
    .expect("a String takes all");
    Ok(())
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::other(format!("{}: not UTF-8", path.display())))
}

/// Returns the content type of a file. All texts are in UTF-8.
fn content_type(file: &Path) -> io::Result<String> {
    let unknown = || io::Error::other(format!("{}: of no known type", file.display()));
    if file.extension().is_some_and(|extension| extension == "sqlite") {
        return Ok("application/vnd.sqlite3".to_owned());
    }
    let found = mime_guess::from_path(file).first().ok_or_else(unknown)?;
    let is_text = found.type_() == "text" || found.subtype() == "json" || found.suffix().is_some();
    Ok(if is_text { format!("{found}; charset=utf-8") } else { found.to_string() })
}

/// Checks whether the file's name changes with its content.
fn is_immutable(name: &str) -> bool {
    let stem = name.strip_prefix("/assets/").and_then(|name| Path::new(name).file_stem()?.to_str());
    let digest = stem.and_then(|stem| Some(stem.rsplit_once('-')?.1));
    let is_digest = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    digest.is_some_and(|digest| digest.len() == DIGEST_CHARACTERS && digest.chars().all(is_digest))
}
