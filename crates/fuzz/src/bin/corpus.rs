//! Unpacks and packs the corpus of a target for `cargo xtask fuzz`: `corpus unpack|pack TARGET
//! FOLDER`.

use std::path::Path;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [verb, name, folder] = &args[..] else { bail!("usage: corpus unpack|pack TARGET FOLDER") };
    let known = || fuzz::TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(" ");
    let target = fuzz::target(name).with_context(|| format!("the targets are: {}", known()))?;
    match verb.as_str() {
        "unpack" => fuzz::corpus::unpack(target, Path::new(folder)),
        "pack" => fuzz::corpus::pack(target, Path::new(folder)).map(drop),
        _ => bail!("usage: corpus unpack|pack TARGET FOLDER"),
    }
}
