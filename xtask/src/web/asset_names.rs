//! Replaces the names of the files that scripts load at run time: the worker and the wasm.
//!
//! In the sources each name is a text that begins with a dot and a slash, for a file next to the
//! script (`"./worker.js"`), as in the published package. In the site the file has another name.

use anyhow::{Result, ensure};

/// The names in the sources, with those in the site.
#[derive(Default)]
pub(super) struct AssetNames(Vec<AssetName>);

struct AssetName {
    /// The name in the sources, such as `worker.js`.
    source: String,
    /// The name in the site, such as `worker-0A1B2C3D.js`.
    site: String,
    is_used: bool,
}

impl AssetNames {
    /// Adds a file; `path` is its path in the site.
    pub(super) fn add(&mut self, source: &str, path: &str) {
        let site = path.rsplit('/').next().unwrap_or(path).to_owned();
        self.0.push(AssetName { source: source.to_owned(), site, is_used: false });
    }

    /// Replaces the names in a script with those of the site.
    pub(super) fn put_into(&mut self, script: &str) -> String {
        let mut script = script.to_owned();
        for name in &mut self.0 {
            for quote in ['"', '\'', '`'] {
                let text = format!("{quote}./{}{quote}", name.source);
                name.is_used |= script.contains(&text);
                script = script.replace(&text, &format!("{quote}./{}{quote}", name.site));
            }
        }
        script
    }

    /// Checks that a script uses each name; otherwise no script could load the file.
    pub(super) fn ensure_used(&self) -> Result<()> {
        for name in &self.0 {
            ensure!(name.is_used, "no script refers to \"./{}\"", name.source);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> AssetNames {
        let mut names = AssetNames::default();
        names.add("worker.js", "/assets/worker-0A1B2C3D.js");
        names
    }

    #[test]
    fn scripts_get_the_sites_names() {
        for (script, expected) in [
            (r#"at("./worker.js",b)"#, r#"at("./worker-0A1B2C3D.js",b)"#),
            ("at(`./worker.js`)", "at(`./worker-0A1B2C3D.js`)"),
            (r#"at("./other-worker.js")"#, r#"at("./other-worker.js")"#),
            (r#"say("see ./worker.js")"#, r#"say("see ./worker.js")"#),
        ] {
            assert_eq!(names().put_into(script), expected);
        }
    }

    #[test]
    fn a_name_that_no_script_has_is_an_error() {
        let mut names = names();
        names.put_into("at('./other.js')");
        assert!(names.ensure_used().is_err());
        names.put_into("at('./worker.js')");
        assert!(names.ensure_used().is_ok());
    }
}
