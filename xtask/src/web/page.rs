//! Replaces the links in a page's HTML with the names that the files have in the site.
//!
//! The source uses `src/main.tsx` or `main.js` for its script and `main.css` for its style, and
//! names the files of `public` directly.
//!
//! # Invariants
//! - All files that a page loads exist: a name without a file is an error.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// The files that a page can load, as paths in the site.
pub(super) struct PageAssets {
    pub(super) script: String,
    pub(super) style: Option<String>,
    /// The files of `public`, by their names.
    pub(super) public: BTreeMap<String, String>,
}

/// Elements that load their `href` or `src`; an `a` is only a link.
const LOADING: &[&str] = &["<img", "<link", "<script"];

/// Returns the page with the site's paths. A style that it does not mention is linked at the end of
/// its head.
pub(super) fn link(html: &str, assets: &PageAssets) -> Result<String> {
    let mut linked = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').map_or(rest.len(), |end| at + end);
        linked.push_str(&rest[..at]);
        let element = &rest[at..end];
        let is_loading = LOADING.iter().any(|name| element.starts_with(name));
        linked.push_str(&if is_loading { link_element(element, assets)? } else { element.into() });
        rest = &rest[end..];
    }
    linked.push_str(rest);
    if !linked.contains(&assets.script) {
        bail!("the page does not load src/main.tsx");
    }
    match &assets.style {
        Some(style) if !linked.contains(style) => {
            let Some(end) = linked.find("</head>") else { bail!("the page has no </head>") };
            linked.insert_str(end, &format!("<link rel=\"stylesheet\" href=\"{style}\">\n"));
        }
        _ => {}
    }
    Ok(linked)
}

fn link_element(element: &str, assets: &PageAssets) -> Result<String> {
    for attribute in [" href=\"", " src=\""] {
        let Some(start) = element.find(attribute).map(|at| at + attribute.len()) else { continue };
        let Some(length) = element[start..].find('"') else {
            bail!("{element}: the attribute has no closing quote")
        };
        let path = find(&element[start..start + length], assets)?;
        return Ok(format!("{}{path}{}", &element[..start], &element[start + length..]));
    }
    Ok(element.to_owned())
}

fn find<'a>(link: &str, assets: &'a PageAssets) -> Result<&'a str> {
    let name = link.trim_start_matches('.').trim_start_matches('/');
    if let Some(path) = assets.public.get(name) {
        return Ok(path);
    }
    match (name, &assets.style) {
        ("main.js" | "src/main.tsx", _) => Ok(&assets.script),
        ("main.css", Some(style)) => Ok(style),
        _ => bail!("{link} does not exist: use src/main.tsx, its main.css, or a file in public"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str) -> Result<String> {
        let public = [("icon.svg".to_owned(), "/admin/icon.svg".to_owned())].into();
        let (script, style) = ("/assets/a-1.js".into(), Some("/assets/a-2.css".into()));
        link(html, &PageAssets { script, style, public })
    }

    const SCRIPT: &str = r#"<script type="module" src="/src/main.tsx"></script>"#;

    #[test]
    fn links_become_the_sites_paths() {
        let html = check(&format!(
            "<head>\n<link rel=\"icon\" href=\"./icon.svg\">\n<link href=\"/main.css\">\n{SCRIPT}\
             </head><a href=\"/elsewhere\">x</a>"
        ));
        assert_eq!(
            html.unwrap(),
            "<head>\n<link rel=\"icon\" href=\"/admin/icon.svg\">\n<link href=\"/assets/a-2.css\">\n\
             <script type=\"module\" src=\"/assets/a-1.js\"></script></head>\
             <a href=\"/elsewhere\">x</a>"
        );
    }

    #[test]
    fn a_style_that_is_not_mentioned_is_linked() {
        let html = check(&format!("<head>{SCRIPT}</head>")).unwrap();
        let style = "<link rel=\"stylesheet\" href=\"/assets/a-2.css\">";
        assert!(html.contains(&format!("{style}\n</head>")), "{html}");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert!(check("<head></head>").is_err());
        assert!(check(&format!("<head>{SCRIPT}<link href=\"gone.png\"></head>")).is_err());
        assert!(
            check(&format!("<head>{SCRIPT}<img src=\"https://a.example/b.png\"></head>")).is_err()
        );
    }
}
