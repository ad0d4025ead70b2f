//! Finds the imports between TypeScript files, by the relative paths in their code.
//!
//! Types count like values, and a re-export counts like an import.

use std::collections::BTreeMap;

use super::import_graph::FileGraph;
use super::source_tree::{SourceFile, SourceTree};

/// The texts that precede the path of another file.
const BEFORE_PATH: &[&str] = &["from \"", "import \"", "import(\""];

/// Returns a graph for each directory `web/NAME/src`.
pub(super) fn import_graphs(tree: &SourceTree) -> Vec<FileGraph> {
    let mut graphs: BTreeMap<String, FileGraph> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_typescript()) {
        let Some((folder, _)) = file.path.split_once("/src/") else { continue };
        let folder = format!("{folder}/src/");
        let graph = graphs.entry(folder.clone()).or_insert_with(|| FileGraph::new(folder));
        graph.imports.insert(file.path.clone(), imports(tree, file));
    }
    graphs.into_values().collect()
}

/// Returns the imported files, with the line of the first import.
fn imports(tree: &SourceTree, file: &SourceFile) -> BTreeMap<String, usize> {
    let mut imports = BTreeMap::new();
    for (number, line) in file.numbered_lines() {
        let paths = BEFORE_PATH.iter().filter_map(|before| line.split_once(before));
        for (_, rest) in paths {
            let path = rest.split('"').next().unwrap_or_default();
            if let Some(target) = resolve(tree, &file.path, path) {
                imports.entry(target).or_insert(number);
            }
        }
    }
    imports
}

/// Returns the file that a relative path names, if it is in the tree.
fn resolve(tree: &SourceTree, from: &str, path: &str) -> Option<String> {
    if !path.starts_with('.') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.trim_end_matches(".js").split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let stem = parts.join("/");
    let candidates = [format!("{stem}.ts"), format!("{stem}.tsx")];
    candidates.into_iter().find(|candidate| tree.get(candidate).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, usize)]) {
        let files = [
            ("web/plan/src/items/row.tsx", text),
            ("web/plan/src/items/draft.tsx", ""),
            ("web/plan/src/theme.ts", ""),
        ];
        let graphs = import_graphs(&SourceTree::from_files(&files));
        let found = &graphs[0].imports["web/plan/src/items/row.tsx"];
        let found: Vec<_> = found.iter().map(|(path, line)| (path.as_str(), *line)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn relative_paths_are_followed() {
        let (draft, theme) = ("web/plan/src/items/draft.tsx", "web/plan/src/theme.ts");
        check("\nimport { Draft } from \"./draft.js\";", &[(draft, 2)]);
        check("import {\n  Theme,\n} from \"../theme.js\";", &[(theme, 3)]);
        check("import type { Theme } from \"../theme.js\";", &[(theme, 1)]);
        check("export * from \"../theme.js\";", &[(theme, 1)]);
        check("type T = import(\"../theme.js\").Theme;", &[(theme, 1)]);
    }

    #[test]
    fn packages_and_missing_files_are_no_imports() {
        check("import { open } from \"@warren/client\";", &[]);
        check("import \"./style.css\";", &[]);
        check("const text = \"../theme.js\";", &[]);
    }
}
