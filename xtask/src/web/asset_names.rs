//! Under which names scripts find what they load while they run: the worker and the wasm.
//!
//! In the sources each is a text that begins with a dot and a slash, and lies beside the script
//! (`"./worker.js"`), as in the package that others install. In the site it has another name.

use anyhow::{Result, ensure};

/// The names in the sources, with those in the site.
#[derive(Default)]
pub(super) struct AssetNames(Vec<AssetName>);

struct AssetName {
    /// `worker.js`
    source: String,
    /// `worker-0A1B2C3D.js`
    site: String,
    is_used: bool,
}

impl AssetNames {
    /// `path` is where it is in the site.
    pub(super) fn add(&mut self, source: &str, path: &str) {
        let site = path.rsplit('/').next().unwrap_or(path).to_owned();
        self.0.push(AssetName { source: source.to_owned(), site, is_used: false });
    }

    /// The script with the site's names.
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

    /// A name that no script has would be loaded from nowhere.
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
