//! Formats the result of `warren tune` for the terminal.

use std::fmt;
use std::time::Duration;

use indicatif::DecimalBytes;

use super::{
    PhaseComparison, RecommendationReason, SettingRecommendation, TrialOutcome, TriedSetting,
    TuneReport,
};
use crate::confidence_interval::DifferenceVerdict;
use crate::format::wrap;
use crate::tune::settings::{PowerLossSafety, PragmaValue};

const WIDTH_MAX: usize = 100;
const GAP: &str = "  ";
/// The character between words that stay on one line.
const TIED: char = '\u{1}';

impl fmt::Display for TuneReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![self.machine.to_string()];
        lines.extend(self.subject());
        lines.push(String::new());
        lines.extend(table(&self.differing()));
        lines.extend(self.costs());
        lines.extend(self.without_difference());
        lines.extend(self.refused());
        lines.push(String::new());
        lines.extend(self.recommendation());
        let notes = self.notes.iter().flat_map(|note| hanging("note: ", note));
        lines.extend(notes);
        write!(f, "{}", lines.join("\n"))
    }
}

impl TuneReport {
    fn subject(&self) -> Vec<String> {
        let name = match &self.file {
            Some(file) => format!(
                "{}, {}{}, copied in {:.1} s",
                file.path,
                DecimalBytes(file.file_bytes),
                file.cipher.as_ref().map_or_else(String::new, |cipher| format!(", {cipher}")),
                Duration::from_millis(file.copy_duration_ms).as_secs_f64()
            ),
            None => "a generated file".to_owned(),
        };
        let workload = format!("{:?}", self.workload).to_lowercase();
        let mut lines = hanging("", &format!("workload {workload} on {name}"));
        lines.extend(self.workload_tables.iter().flat_map(|line| hanging("  ", line)));
        let today = self.current_settings.iter();
        let today = today.map(|PragmaValue { pragma, value }| format!("{pragma}{TIED}{value}"));
        let today: Vec<String> = today.collect();
        lines.extend(hanging("current settings: ", &today.join(", ")));
        lines
    }

    /// Returns the rows of settings that differ in any phase.
    fn differing(&self) -> Vec<Vec<String>> {
        let mut rows = vec![vec!["vs. current settings".to_owned()]];
        rows[0].extend(self.noise.iter().map(|one| one.phase.clone()));
        rows[0].push(String::new());
        for tried in self.trials.iter().filter(|tried| tried.differs() && !tried.is_refused()) {
            let mut row = vec![tried.name()];
            row.extend(tried.comparisons.iter().map(|one| {
                if is_different(one) { one.difference.text.clone() } else { "–".to_owned() }
            }));
            row.push(tried.mark());
            rows.push(row);
        }
        if rows.len() == 1 { Vec::new() } else { rows }
    }

    /// Returns the costs of the settings that make any phase faster.
    fn costs(&self) -> Vec<String> {
        let is_faster = |one: &PhaseComparison| one.difference.verdict == DifferenceVerdict::Faster;
        let faster = self
            .trials
            .iter()
            .filter(|tried| tried.comparisons.iter().any(is_faster) && !tried.is_refused());
        faster.flat_map(|tried| hanging("costs: ", &tried.costs())).collect()
    }

    fn without_difference(&self) -> Vec<String> {
        let names = |wanted: DifferenceVerdict| {
            let of = self.trials.iter().filter(|tried| {
                !tried.differs()
                    && tried.comparisons.iter().any(|one| one.difference.verdict == wanted)
            });
            of.map(|tried| tried.name().replace(' ', &TIED.to_string())).collect::<Vec<_>>()
        };
        let mut lines = Vec::new();
        for (verdict, label) in [
            (DifferenceVerdict::NoDifference, "no difference found: "),
            (DifferenceVerdict::TooFewRounds, "inconclusive, needs more time (--minutes): "),
        ] {
            let names = names(verdict);
            if !names.is_empty() {
                lines.extend(hanging(label, &names.join(", ")));
            }
        }
        lines
    }

    fn refused(&self) -> Vec<String> {
        let refused = self.trials.iter().filter(|one| one.outcome == TrialOutcome::NeedsPermission);
        let lines = refused.map(|one| {
            format!(
                "{}. Compared with the recommended settings: {}. Risk: {}. Use --allow-unsafe to \
                 include it",
                one.name(),
                describe_comparisons(&one.comparisons),
                one.impact
            )
        });
        lines.flat_map(|line| hanging("not recommended: ", &line)).collect()
    }

    fn recommendation(&self) -> Vec<String> {
        let mut lines = match &self.combined {
            Some(combined) => hanging(
                "recommended settings, compared with the current ones: ",
                &describe_comparisons(combined),
            ),
            None => no_recommendation(&self.trials),
        };
        let text = |one: &SettingRecommendation| format!("PRAGMA {} = {};", one.pragma, one.value);
        let width = self.recommended.iter().map(|one| text(one).len()).max().unwrap_or(0);
        lines.extend(
            self.recommended
                .iter()
                .map(|one| format!("  {:width$}  -- {}", text(one), self.why(one))),
        );
        let noise: Vec<&str> = self.noise.iter().map(|one| one.difference.text.as_str()).collect();
        let is_quiet =
            self.noise.iter().all(|one| one.difference.verdict == DifferenceVerdict::NoDifference);
        let noise = if is_quiet { "no difference found".to_owned() } else { noise.join(", ") };
        lines.extend(hanging("current settings, measured again (effect of chance): ", &noise));
        lines
    }

    fn why(&self, of: &SettingRecommendation) -> String {
        let is_default = if of.default { " (SQLite's default)" } else { "" };
        let why = match of.reason {
            RecommendationReason::Faster => return self.why_faster(of),
            RecommendationReason::Unchanged => {
                "unchanged; explicit because library defaults differ"
            }
            RecommendationReason::Hygiene => match of.pragma.as_str() {
                "busy_timeout" => {
                    "waits for locks: longer than a transaction, shorter than people wait"
                }
                "foreign_keys" => "not for speed: enforces the schema's foreign keys",
                "journal_size_limit" => "not for speed: truncates a WAL that has grown",
                _ => "not for speed: keeps plaintext out of temporary files",
            },
        };
        format!("{why}{is_default}")
    }

    fn why_faster(&self, of: &SettingRecommendation) -> String {
        let is_it = |one: &&TriedSetting| one.pragma == of.pragma && one.value == of.value;
        let tried =
            self.trials.iter().filter(is_it).find(|one| one.outcome == TrialOutcome::Chosen);
        match tried {
            // The setting was added together with another.
            None => "required for WAL not to lose commits on power loss".to_owned(),
            Some(one) if one.safety == PowerLossSafety::MayCorrupt => {
                format!("faster; UNSAFE: {}", one.impact)
            }
            Some(one) if one.pragma == "synchronous" => format!("faster; {}", one.impact),
            Some(_) if of.file_setting => "faster; set once, then run VACUUM".to_owned(),
            Some(one) if one.value == "WAL" => "faster; stored in the file".to_owned(),
            Some(_) => "faster".to_owned(),
        }
    }
}

impl TriedSetting {
    fn name(&self) -> String {
        format!("{} {}", self.pragma, self.value)
    }

    fn differs(&self) -> bool {
        self.comparisons.iter().any(is_different)
    }

    /// Returns whether the setting was measured only to show its possible gain.
    fn is_refused(&self) -> bool {
        self.outcome == TrialOutcome::NeedsPermission
    }

    fn costs(&self) -> String {
        let cost = match self.memory_bytes {
            0 if self.impact.is_empty() => "nothing".to_owned(),
            0 => self.impact.to_owned(),
            bytes => format!("up to {} of memory per connection", DecimalBytes(bytes)),
        };
        format!("{}: {cost}", self.name())
    }

    fn mark(&self) -> String {
        let outcome = match self.outcome {
            TrialOutcome::Chosen => "recommended",
            TrialOutcome::NoAdditionalGain => "no additional gain",
            _ => "",
        };
        let safety = if self.safety == PowerLossSafety::MayCorrupt { "UNSAFE" } else { "" };
        let on_top = if self.on_top_of.is_empty() { "" } else { "with the above" };
        let parts = [safety, on_top, outcome].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// Explains why no setting is recommended, without contradicting the table.
fn no_recommendation(tried: &[TriedSetting]) -> Vec<String> {
    let allowed = || tried.iter().filter(|tried| !tried.is_refused());
    let names = |wanted: &dyn Fn(&TriedSetting) -> bool| {
        let names = allowed().filter(|tried| wanted(tried)).map(TriedSetting::name);
        names.map(|name| name.replace(' ', &TIED.to_string())).collect::<Vec<_>>().join(", ")
    };
    let is = |tried: &TriedSetting, verdict| {
        tried.comparisons.iter().any(|one| one.difference.verdict == verdict)
    };
    let faster = names(&|tried| is(tried, DifferenceVerdict::Faster));
    let unsettled = names(&|tried| is(tried, DifferenceVerdict::TooFewRounds));
    let mut lines = Vec::new();
    if !faster.is_empty() {
        lines.extend(hanging(
            "",
            &format!(
                "faster in part of the workload, but not recommended: {faster}. Each is slower in \
                 another part, inconclusive for the whole workload, or was not confirmed when \
                 measured again. More time may decide (--minutes)"
            ),
        ));
    }
    if !unsettled.is_empty() {
        let text = format!("not ruled out: {unsettled}; needs more time (--minutes)");
        lines.extend(hanging("", &text));
    }
    if lines.is_empty() {
        let highest = |tried: &TriedSetting| {
            let highs = tried.comparisons.iter().map(|one| one.difference.interval.high);
            highs.fold(1.0, f64::max)
        };
        let most = allowed().map(highest).fold(1.0, f64::max);
        lines.extend(hanging(
            "",
            &format!(
                "no speed gain found: no setting tried is significantly faster, and none can be \
                 more than {most:.2} times as fast in any part of the workload"
            ),
        ));
    }
    lines
}

fn is_different(one: &PhaseComparison) -> bool {
    matches!(one.difference.verdict, DifferenceVerdict::Faster | DifferenceVerdict::Slower)
}

/// Formats comparisons: `mix faster by 8–11 %, reads no difference found`.
fn describe_comparisons(comparisons: &[PhaseComparison]) -> String {
    let parts = comparisons.iter().map(|one| format!("{} {}", one.phase, one.difference.text));
    parts.collect::<Vec<_>>().join(", ")
}

/// Aligns the columns, each as wide as its widest cell.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let lines = rows.iter().map(|row| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = width(column);
            format!("{cell:width$}")
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    });
    lines.collect()
}

/// Returns a paragraph whose further lines are indented.
fn hanging(label: &str, text: &str) -> Vec<String> {
    let lines = wrap(text, WIDTH_MAX - label.len());
    let lines = lines.into_iter().map(|line| line.replace(TIED, " "));
    let lines = lines.enumerate().map(|(number, line)| {
        if number == 0 { format!("{label}{line}") } else { format!("    {line}") }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence_interval::MedianDifference;
    use crate::measure::Distribution;

    /// Returns a setting whose phases were this many times as fast in each round.
    fn tried(pragma: &'static str, phases: &[&[f64]]) -> TriedSetting {
        let comparison = |ratios: &&[f64]| PhaseComparison {
            phase: "mix".to_owned(),
            rate: Distribution::from_samples(ratios.to_vec()),
            ratio: Distribution::from_samples(ratios.to_vec()),
            difference: MedianDifference::from_ratios(ratios, 1),
        };
        TriedSetting {
            pragma,
            value: "1",
            safety: PowerLossSafety::Safe,
            impact: "",
            memory_bytes: 0,
            outcome: TrialOutcome::NoDifference,
            on_top_of: Vec::new(),
            comparisons: phases.iter().map(comparison).collect(),
            added_gain: None,
        }
    }

    #[test]
    fn a_no_contradicts_nothing_and_has_an_interval() {
        let (fast, same) = ([2.0; 12], [0.9, 1.1, 0.95, 1.05, 1.0, 1.2, 0.8, 1.0, 1.1, 0.9]);
        let part = no_recommendation(&[tried("wal", &[&fast, &same]), tried("other", &[&same])]);
        let part = part.join(" ");
        assert!(
            part.contains("faster in part of the workload, but not recommended: wal 1."),
            "{part}"
        );
        assert!(!part.contains("no setting tried is significantly faster"), "{part}");

        let short = no_recommendation(&[tried("wal", &[&[2.0, 3.0]])]).join(" ");
        assert_eq!(short, "not ruled out: wal 1; needs more time (--minutes)");

        let none = no_recommendation(&[tried("other", &[&same])]).join(" ");
        assert!(none.contains("none can be more than 1."), "{none}");
    }
}
