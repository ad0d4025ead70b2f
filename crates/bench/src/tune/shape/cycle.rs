//! Determines the order in which operations are repeated.

use crate::tune::tune_load::TuneWorkload;

/// Operations of one kind, each chosen in proportion to its weight. An insert has two names: its
/// own and that of its delete.
pub(super) struct WeightedOperations {
    all: Vec<(Vec<String>, f64)>,
    /// The claim of each operation to be chosen next.
    owed: Vec<f64>,
}

impl WeightedOperations {
    pub(super) fn new(all: Vec<(Vec<String>, f64)>) -> Self {
        let owed = vec![0.0; all.len()];
        Self { all, owed }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the operation with the largest claim, which spreads the operations evenly and is
    /// the same each time.
    fn next(&mut self) -> Option<&[String]> {
        let total: f64 = self.all.iter().map(|(_, weight)| weight).sum();
        for (owed, (_, weight)) in self.owed.iter_mut().zip(&self.all) {
            *owed += weight / total;
        }
        let most = (0..self.owed.len()).max_by(|a, b| self.owed[*a].total_cmp(&self.owed[*b]))?;
        self.owed[most] -= 1.0;
        Some(&self.all[most].0)
    }
}

/// Returns a workload's pattern: `R`ead, `U`pdate, `I`nsert, `D`elete of the row that was inserted
/// last.
fn pattern(workload: TuneWorkload) -> String {
    match workload {
        TuneWorkload::Read => {
            let reads = "R".repeat(19);
            ["U", "I", "U", "D"].map(|write| format!("{reads}{write}")).concat()
        }
        TuneWorkload::Write => "UIUDRUIUDU".to_owned(),
        TuneWorkload::Mixed | TuneWorkload::Mail | TuneWorkload::Sync => "RRURIRURDR".to_owned(),
    }
}

/// The number of times that a pattern is repeated, so that each table gets its share.
const REPEATS: usize = 40;

/// Returns a cycle of all operations, in the workload's proportion.
pub(super) fn mix(
    workload: TuneWorkload,
    reads: &mut WeightedOperations,
    updates: &mut WeightedOperations,
    pairs: &mut WeightedOperations,
) -> Vec<String> {
    cycle(&pattern(workload).repeat(REPEATS), reads, updates, pairs)
}

pub(super) fn reads(reads: &mut WeightedOperations) -> Vec<String> {
    let mut none = [WeightedOperations::new(Vec::new()), WeightedOperations::new(Vec::new())];
    let [updates, pairs] = &mut none;
    cycle(&"R".repeat(10 * REPEATS), reads, updates, pairs)
}

pub(super) fn writes(
    updates: &mut WeightedOperations,
    pairs: &mut WeightedOperations,
) -> Vec<String> {
    cycle(&"UIUD".repeat(REPEATS), &mut WeightedOperations::new(Vec::new()), updates, pairs)
}

/// Returns the cycle for a pattern. Reads that a file does not support are left out; missing
/// writes are replaced by other writes.
fn cycle(
    pattern: &str,
    reads: &mut WeightedOperations,
    updates: &mut WeightedOperations,
    pairs: &mut WeightedOperations,
) -> Vec<String> {
    let mut cycle = Vec::new();
    let mut open: Option<String> = None;
    let mut inserts = |open: &mut Option<String>| -> Option<String> {
        if let Some(delete) = open.take() {
            return Some(delete);
        }
        let [insert, delete] = pairs.next()? else { return None };
        *open = Some(delete.clone());
        Some(insert.clone())
    };
    for kind in pattern.chars() {
        let name = match kind {
            'R' => reads.next().map(|names| names[0].clone()),
            'U' if updates.is_empty() => inserts(&mut open),
            'I' | 'D' => {
                inserts(&mut open).or_else(|| updates.next().map(|names| names[0].clone()))
            }
            _ => updates.next().map(|names| names[0].clone()),
        };
        cycle.extend(name);
    }
    cycle.extend(open);
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[(&[&str], f64)]) -> WeightedOperations {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        WeightedOperations::new(all.iter().map(|(names, weight)| (owned(names), *weight)).collect())
    }

    #[test]
    fn a_mix_has_its_proportion_and_deletes_what_it_inserted() {
        for (workload, share) in
            [(TuneWorkload::Read, 95), (TuneWorkload::Mixed, 60), (TuneWorkload::Write, 10)]
        {
            let mut reads = names(&[(&["a"], 3.0), (&["b"], 1.0)]);
            let mut updates = names(&[(&["u"], 1.0)]);
            let mut pairs = names(&[(&["+x", "-x"], 1.0), (&["+y", "-y"], 1.0)]);
            let cycle = mix(workload, &mut reads, &mut updates, &mut pairs);
            let count = |name: &str| cycle.iter().filter(|of| *of == name).count();
            let of_reads = count("a") + count("b");
            assert_eq!(of_reads * 100, share * cycle.len());
            assert_eq!((count("a"), count("+x")), (of_reads / 4 * 3, count("+y")));
            let mut open: Vec<String> = Vec::new();
            for name in &cycle {
                match name.split_at(1) {
                    ("+", table) => open.push(table.to_owned()),
                    ("-", table) => assert_eq!(open.pop().as_deref(), Some(table)),
                    _ => {}
                }
            }
            assert!(open.is_empty());
        }
    }

    #[test]
    fn what_cannot_be_done_is_replaced_by_what_can() {
        let none = || names(&[]);
        let (mut updates, mut pairs) = (names(&[(&["u"], 1.0)]), names(&[(&["+", "-"], 1.0)]));
        let only = writes(&mut updates, &mut none());
        assert!(only.iter().all(|name| name == "u") && only.len() == 160);
        let only = writes(&mut none(), &mut pairs);
        assert!(only.chunks(2).all(|pair| pair == ["+", "-"]));
        let reads_only =
            mix(TuneWorkload::Mixed, &mut names(&[(&["r"], 1.0)]), &mut none(), &mut none());
        assert!(!reads_only.is_empty() && reads_only.iter().all(|name| name == "r"));
    }
}
