//! Finds the imports between the Rust files of a crate, by the paths in their code.
//!
//! # Invariants
//! - A path counts for the file that declares the named item: re-exports are followed. If no file
//!   declares it (a macro created it), it counts for the last module on the path.
//! - A re-export alone imports nothing, but a use of its name does.
//! - Items under `#[cfg(test)]` and the files of such modules are left out.
//!
//! # Not here
//! - The methods that a call runs: an `impl` may be in another file than its type.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::source_tree::SourceTree;

/// The maximum length of a chain of re-exports.
const REEXPORTS_DEPTH_MAX: usize = 8;

/// The files of a crate, or of a package of `web/`, with the imports of each.
#[derive(Debug)]
pub(super) struct FileGraph {
    /// The directory of the files, with its final `/`.
    source_folder: String,
    /// Maps each file to its imported files, with the line of the first import.
    pub(super) imports: BTreeMap<String, BTreeMap<String, usize>>,
}

impl FileGraph {
    pub(super) fn new(source_folder: String) -> FileGraph {
        FileGraph { source_folder, imports: BTreeMap::new() }
    }

    pub(super) fn short_name<'a>(&self, path: &'a str) -> &'a str {
        let name = path.strip_prefix(&self.source_folder).unwrap_or(path);
        name.rsplit_once('.').map_or(name, |(stem, _extension)| stem)
    }
}

/// The segments of a path in code, which is relative to a module.
type Segments = Vec<String>;

/// The module of one file. Inline modules belong to it.
#[derive(Debug, Default)]
struct FileModule {
    file: String,
    items: BTreeMap<String, ItemPlace>,
    /// Maps each alias to its path.
    aliases: BTreeMap<String, Segments>,
    /// The paths of `use …::*`.
    globs: Vec<Segments>,
    /// Paths from this module, and their lines.
    paths: Vec<(Segments, usize)>,
    parent: Option<usize>,
}

/// The place of an item.
#[derive(Clone, Copy, Debug)]
enum ItemPlace {
    Here,
    /// The item is a module of the crate, in a file of its own.
    Module(usize),
    /// The item is a module whose file is not a source of this crate.
    OtherFile,
}

/// The modules of a crate; the root is the first.
#[derive(Debug, Default)]
struct CrateModules {
    modules: Vec<FileModule>,
}

pub(super) fn import_graphs(tree: &SourceTree) -> Vec<FileGraph> {
    let is_root = |path: &str| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    let roots = tree.rust_files().filter(|file| is_root(&file.path));
    let graph = |root: &super::source_tree::SourceFile| {
        let source_folder = root.path[..=root.path.rfind('/')?].to_owned();
        let mut modules = CrateModules::default();
        modules.add(tree, &root.path, &source_folder, None)?;
        Some(FileGraph { source_folder, imports: modules.imports() })
    };
    roots.filter_map(graph).collect()
}

impl CrateModules {
    /// Adds the module of a file and those below it; `folder` is the directory of its children.
    fn add(
        &mut self,
        tree: &SourceTree,
        path: &str,
        folder: &str,
        parent: Option<usize>,
    ) -> Option<usize> {
        // rustc reports files that do not parse.
        let file = syn::parse_file(&tree.get(path)?.text).ok()?;
        let mut reader = PathReader::default();
        reader.visit_file(&file);
        let module = FileModule { file: path.to_owned(), parent, ..reader.module };
        let index = self.modules.len();
        self.modules.push(module);
        for name in reader.child_names {
            let child = format!("{folder}{name}.rs");
            let child = self.add(tree, &child, &format!("{folder}{name}/"), Some(index));
            let place = child.map_or(ItemPlace::OtherFile, ItemPlace::Module);
            self.modules[index].items.insert(name, place);
        }
        Some(index)
    }

    fn imports(&self) -> BTreeMap<String, BTreeMap<String, usize>> {
        let mut imports: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for (index, module) in self.modules.iter().enumerate() {
            let targets = imports.entry(module.file.clone()).or_default();
            for (path, line) in &module.paths {
                let target = self.resolve(index, path, REEXPORTS_DEPTH_MAX);
                if let Some(target) = target.filter(|target| *target != index) {
                    targets.entry(self.modules[target].file.clone()).or_insert(*line);
                }
            }
        }
        imports
    }

    /// Returns the module that declares the item of a path, if it is in this crate.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.resolve_in(0, rest, depth),
            "self" => self.resolve_in(from, rest, depth),
            "super" => {
                let parent = self.modules[from].parent?;
                let is_further_up = rest.first().is_some_and(|next| next == "super");
                if is_further_up {
                    self.resolve(parent, rest, depth)
                } else {
                    self.resolve_in(parent, rest, depth)
                }
            }
            name => {
                let module = &self.modules[from];
                // A single name may also be the name of a variable.
                let is_child = !rest.is_empty() && module.items.contains_key(name);
                let is_here = is_child || module.aliases.contains_key(name);
                is_here.then(|| self.resolve_in(from, path, depth))?
            }
        }
    }

    fn resolve_in(&self, module: usize, path: &[String], depth: usize) -> Option<usize> {
        let Some((name, rest)) = path.split_first() else { return Some(module) };
        let here = &self.modules[module];
        match here.items.get(name) {
            Some(ItemPlace::Here) => return Some(module),
            Some(ItemPlace::Module(child)) => return self.resolve_in(*child, rest, depth),
            Some(ItemPlace::OtherFile) => return None,
            None => {}
        }
        let depth = depth.checked_sub(1)?;
        if let Some(target) = here.aliases.get(name) {
            let whole: Segments = target.iter().chain(rest).cloned().collect();
            return self.resolve(module, &whole, depth);
        }
        let from_globs = here.globs.iter().filter_map(|glob| self.resolve(module, glob, depth));
        let mut declared =
            from_globs.filter(|target| self.modules[*target].items.contains_key(name));
        declared.next().map_or(Some(module), |target| self.resolve_in(target, path, depth))
    }
}

/// Collects a file's declarations and paths.
#[derive(Default)]
struct PathReader {
    module: FileModule,
    child_names: BTreeSet<String>,
    /// The number of inline modules around the current item.
    inline_depth: usize,
    /// Whether the current item is a `pub use`.
    is_reexport: bool,
}

impl PathReader {
    /// Records a path of code. Inside an inline module, `super` may mean the file's own module.
    fn add_path(&mut self, mut path: Segments, line: usize) {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let inline = supers.min(self.inline_depth);
        path.drain(..inline);
        if inline > 0 && supers == inline {
            path.insert(0, "self".to_owned());
        }
        self.module.paths.push((path, line));
    }

    fn add_use(&mut self, tree: &syn::UseTree, before: &[String]) {
        match tree {
            syn::UseTree::Path(path) => {
                let before: Segments =
                    before.iter().cloned().chain([path.ident.to_string()]).collect();
                self.add_use(&path.tree, &before);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, before);
                }
            }
            syn::UseTree::Name(name) => {
                let (ident, line) = (name.ident.to_string(), name.ident.span().start().line);
                let alias =
                    if ident == "self" { before.last().cloned() } else { Some(ident.clone()) };
                let own = (ident != "self").then_some(ident);
                let path: Segments = before.iter().cloned().chain(own).collect();
                self.add_alias(alias, path, line);
            }
            syn::UseTree::Rename(rename) => {
                let (own, line) = (rename.ident.to_string(), rename.ident.span().start().line);
                let path: Segments = before.iter().cloned().chain([own]).collect();
                self.add_alias(Some(rename.rename.to_string()), path, line);
            }
            syn::UseTree::Glob(glob) => {
                self.module.globs.push(before.to_vec());
                self.add_path(before.to_vec(), glob.star_token.spans[0].start().line);
            }
        }
    }

    fn add_alias(&mut self, alias: Option<String>, path: Segments, line: usize) {
        if !self.is_reexport {
            self.add_path(path.clone(), line);
        }
        // Names inside inline modules and functions do not belong to the file's module.
        if self.inline_depth == 0 && path.len() > 1 {
            self.module.aliases.extend(alias.map(|alias| (alias, path)));
        }
    }

    /// Records the paths in a macro's arguments, which have no syntax tree.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path = Segments::new();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.add_path(std::mem::take(&mut path), ident.span().start().line);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => colons = 0,
            }
            if !matches!(&token, TokenTree::Ident(_)) && colons == 0 {
                self.add_path(std::mem::take(&mut path), token.span().start().line);
            }
        }
        self.add_path(path, 1);
    }
}

impl<'ast> Visit<'ast> for PathReader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = attributes_and_name(item);
        if attributes.iter().any(is_for_tests) {
            return;
        }
        if self.inline_depth == 0 {
            self.module.items.extend(name.map(|name| (name, ItemPlace::Here)));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() {
            self.inline_depth += 1;
            visit::visit_item_mod(self, item);
            self.inline_depth -= 1;
        } else {
            self.child_names.insert(item.ident.to_string());
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.is_reexport = !matches!(item.vis, syn::Visibility::Inherited);
        self.add_use(&item.tree, &[]);
    }

    /// Ignores `pub(super)`, which imports nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(1, |segment| segment.ident.span().start().line);
        self.add_path(names, line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.add_tokens(called.tokens.clone());
    }
}

fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident("cfg")
        && list.tokens.clone().into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == "test",
            _ => false,
        })
}

fn attributes_and_name(item: &syn::Item) -> (&[syn::Attribute], Option<String>) {
    let (attributes, ident) = match item {
        syn::Item::Const(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        syn::Item::Impl(item) => (&item.attrs, None),
        syn::Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        syn::Item::Mod(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Static(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Union(item) => (&item.attrs, Some(&item.ident)),
        syn::Item::Use(item) => (&item.attrs, None),
        _ => return (&[], None),
    };
    (attributes, ident.map(ToString::to_string))
}
