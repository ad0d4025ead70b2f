//! Builds the site: Plan at `/`, the operator's page at `/admin`, and the files that both load.
//!
//! # Invariants
//! - The name of each file below `assets/` contains a digest of its bytes. A file is named after
//!   the files that it refers to, so a change of one changes the names of all that lead to it.
//! - The service worker has the list of Plan's files, and a hash of them all: the app is offline
//!   completely, in one version, or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::asset_names::AssetNames;
use super::input_fingerprint::files_below;
use super::web_paths::WebPaths;
use super::{page, precompress};
use crate::programs::succeed;

/// The length of a digest in a name, by which `web-assets` recognizes such names.
const DIGEST_CHARACTERS: usize = 8;

/// A page's sources in `web/`, and its directory in the site.
struct SitePage {
    source: &'static str,
    folder: &'static str,
}

const PLAN: SitePage = SitePage { source: "plan", folder: "" };
const ADMIN: SitePage = SitePage { source: "admin", folder: "admin/" };

/// The output of esbuild for an entry point.
struct EsbuildBundle {
    script: String,
    style: Option<String>,
    /// Fonts and pictures, which esbuild has named.
    others: Vec<PathBuf>,
}

/// A site that is being built.
struct SiteBuilder<'a> {
    places: &'a WebPaths,
    folder: PathBuf,
    names: AssetNames,
}

/// Builds `target/web/site`, and prints its size.
pub(super) fn build(places: &WebPaths) -> Result<()> {
    let folder = places.out.join("site.next");
    remove(&folder)?;
    let mut site = SiteBuilder { places, folder, names: AssetNames::default() };
    let mut offline = site.add_replica()?;
    offline.extend(site.add_page(&PLAN)?);
    site.add_page(&ADMIN)?;
    site.names.ensure_used()?;
    site.add_service_worker(&offline)?;
    precompress::run(&site.folder, &places.out.join("brotli"))?;
    replace(&places.out.join("site"), &site.folder)
}

impl SiteBuilder<'_> {
    /// Writes a file, and returns its path with a leading slash.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<String> {
        let file = self.folder.join(name);
        fs::create_dir_all(file.parent().context("a file has a folder")?)?;
        fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(format!("/{name}"))
    }

    /// Writes a file like [`Self::write`], with the digest of the bytes in its name.
    fn write_asset(&self, name: &str, bytes: &[u8]) -> Result<String> {
        self.write(&format!("assets/{}", with_digest(name, bytes)), bytes)
    }

    /// Adds the wasm, and the worker that loads it.
    fn add_replica(&mut self) -> Result<Vec<String>> {
        let wasm = self.places.out.join("wasm/replica_bg.wasm");
        let bytes = fs::read(&wasm).with_context(|| format!("cannot read {}", wasm.display()))?;
        let wasm = self.write_asset("replica_bg.wasm", &bytes)?;
        self.names.add("replica_bg.wasm", &wasm);
        let worker = self.places.web.join("client/src/worker.ts");
        let bundle = bundle(self.places, "worker.js", &worker, &[])?;
        let script = self.names.put_into(&bundle.script);
        let worker = self.write_asset("worker.js", script.as_bytes())?;
        self.names.add("worker.js", &worker);
        Ok(vec![wasm, worker])
    }

    /// Adds the page's script and style, the HTML that names them, and copies its other files.
    fn add_page(&mut self, page: &SitePage) -> Result<Vec<String>> {
        let source = self.places.web.join(page.source);
        let bundle = bundle(self.places, page.source, &source.join("src/main.tsx"), &[])?;
        let script = self.names.put_into(&bundle.script);
        let script = self.write_asset(&format!("{}.js", page.source), script.as_bytes())?;
        let mut assets = page::PageAssets { script, style: None, public: BTreeMap::new() };
        if let Some(style) = &bundle.style {
            let name = format!("{}.css", page.source);
            assets.style = Some(self.write_asset(&name, style.as_bytes())?);
        }
        let mut paths: Vec<String> =
            [&assets.script].into_iter().chain(&assets.style).cloned().collect();
        for other in &bundle.others {
            let name = other.file_name().context("a file has a name")?.to_string_lossy();
            paths.push(self.write(&format!("assets/{name}"), &fs::read(other)?)?);
        }
        let public = source.join("public");
        for file in files_below(&public)?.iter().filter(|file| !file.ends_with("index.html")) {
            let name = file.strip_prefix(&public)?.to_string_lossy().into_owned();
            let path = self.write(&format!("{}{name}", page.folder), &fs::read(file)?)?;
            paths.push(path.clone());
            assets.public.insert(name, path);
        }
        let html = public.join("index.html");
        let text = fs::read_to_string(&html).with_context(|| html.display().to_string())?;
        let text = page::link(&text, &assets).with_context(|| html.display().to_string())?;
        paths.push(self.write(&format!("{}index.html", page.folder), text.as_bytes())?);
        Ok(paths)
    }

    /// Adds the service worker, with the list of Plan's files that it caches.
    fn add_service_worker(&self, files: &[String]) -> Result<()> {
        let mut hasher = blake3::Hasher::new();
        for path in files {
            hasher.update(path.as_bytes());
            hasher.update(&fs::read(self.folder.join(&path[1..]))?);
        }
        let version = &hasher.finalize().to_hex()[..16];
        let defines = [("__FILES__", json!(files)), ("__VERSION__", json!(version))];
        let source = self.places.web.join("plan/src/sw.ts");
        let bundle = bundle(self.places, "sw", &source, &defines)?;
        self.write("sw.js", bundle.script.as_bytes()).map(drop)
    }
}

/// Adds the digest to a name: `main.js` → `main-0A1B2C3D.js`.
fn with_digest(name: &str, bytes: &[u8]) -> String {
    let digest = blake3::hash(bytes).to_hex()[..DIGEST_CHARACTERS].to_ascii_uppercase();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    format!("{stem}-{digest}.{extension}")
}

/// Bundles and minifies an entry point; React is replaced by Preact.
fn bundle(
    places: &WebPaths,
    name: &str,
    entry: &Path,
    defines: &[(&str, Value)],
) -> Result<EsbuildBundle> {
    ensure!(entry.is_file(), "{} does not exist", entry.display());
    let folder = places.out.join("bundle").join(name);
    remove(&folder)?;
    let metafile = folder.join("meta.json");
    let mut esbuild = places.npm("esbuild");
    esbuild.arg(entry).args(["--bundle", "--minify", "--format=esm", "--target=es2023"]);
    esbuild.args(["--entry-names=entry", "--asset-names=[name]-[hash]", "--legal-comments=none"]);
    esbuild.args(["--alias:react=preact/compat", "--alias:react-dom=preact/compat"]);
    esbuild.args(["--jsx=automatic", "--jsx-import-source=preact", "--log-level=warning"]);
    esbuild.args([".png", ".svg", ".woff2"].map(|kind| format!("--loader:{kind}=file")));
    esbuild.args(defines.iter().map(|(name, value)| format!("--define:{name}={value}")));
    esbuild.arg(format!("--outdir={}", folder.display()));
    esbuild.arg(format!("--metafile={}", metafile.display()));
    succeed(&mut esbuild)?;
    let metafile: Value =
        serde_json::from_slice(&fs::read(&metafile)?).context("cannot parse the metafile")?;
    let outputs = metafile["outputs"].as_object().context("the metafile has no outputs")?;
    let mut bundle = EsbuildBundle { script: String::new(), style: None, others: Vec::new() };
    for output in outputs.keys() {
        let output = places.web.join(output);
        match output.file_name().and_then(|name| name.to_str()) {
            Some("entry.js") => bundle.script = fs::read_to_string(&output)?,
            Some("entry.css") => bundle.style = Some(fs::read_to_string(&output)?),
            _ => bundle.others.push(output),
        }
    }
    Ok(bundle)
}

/// Replaces an old directory with a new one, unless they are the same.
pub(super) fn replace(old: &Path, new: &Path) -> Result<()> {
    if contents(old)? == contents(new)? {
        return remove(new);
    }
    remove(old)?;
    fs::rename(new, old).with_context(|| format!("cannot rename {}", new.display()))
}

fn contents(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let read = |file: PathBuf| Ok((file.strip_prefix(folder)?.to_owned(), fs::read(&file)?));
    files_below(folder)?.into_iter().map(read).collect()
}

pub(super) fn remove(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_digest_of_its_bytes() {
        let name = with_digest("main.css", b"a");
        let digest = name.strip_prefix("main-").unwrap().strip_suffix(".css").unwrap();
        assert_eq!(digest.len(), 8, "{name}");
        assert_ne!(name, with_digest("main.css", b"b"));
    }
}
