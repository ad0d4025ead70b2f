//! Copies the files that `actualpy` requests from an Actual server into `target/web/actual`: an
//! empty budget, and the migrations of budgets from older apps.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::input_fingerprint::files_below;
use super::site::{remove, replace};
use super::web_paths::WebPaths;

/// The list of the files in [`DATA`].
const INDEX: &str = "data-file-index.txt";
const DATA: &str = "data";

/// Copies the files from the npm package of Actual's web app.
pub(super) fn build(places: &WebPaths) -> Result<()> {
    let app = places.web.join("node_modules/@actual-app/web/build");
    let next = places.out.join("actual.next");
    remove(&next)?;
    let index = app.join(INDEX);
    let names = fs::read_to_string(&index).with_context(|| index.display().to_string())?;
    copy(&index, &next.join(INDEX))?;
    for file in files_below(&app.join(DATA))? {
        let name = file.strip_prefix(&app)?;
        let is_named = name
            .strip_prefix(DATA)?
            .to_str()
            .is_some_and(|name| names.lines().any(|line| line == name));
        ensure!(is_named, "{INDEX} does not list {}", name.display());
        copy(&file, &next.join(name))?;
    }
    replace(&places.out.join("actual"), &next)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}
