//! Tests lost edits with devices that edit one row, each with only the changes that it received.

use proptest::prelude::*;

use super::*;
use crate::NodeId;

/// The changes of the row that each device has.
struct SimulatedDevices {
    known: Vec<RowChanges>,
    millis: u64,
}

impl SimulatedDevices {
    fn new(count: usize) -> Self {
        Self { known: vec![RowChanges::new(); count], millis: 100_000_000 }
    }

    fn next_timestamp(&mut self, device: usize) -> Timestamp {
        self.millis += 1;
        Timestamp::new(self.millis, 0, NodeId(device as u64)).unwrap()
    }

    /// Writes cells, with the messages that the device shows in them as replaced.
    fn write(&mut self, device: usize, cells: &[(&str, i64)]) -> Timestamp {
        let VisibleRow { row, columns } = VisibleRow::from_changes(&self.known[device]);
        let cell = |&(column, value): &(&str, i64)| CellWrite {
            column: column.to_owned(),
            value: Value::Integer(value),
            replaced: columns.get(&column.to_ascii_lowercase()).copied().filter(|_| row.is_live()),
        };
        let is_dead = !row.is_live() && row.tombstone() != Timestamp::ZERO;
        let change = Change::Write {
            table: "t".into(),
            key: vec![],
            cells: cells.iter().map(cell).collect(),
            replaced_tombstone: is_dead.then(|| row.tombstone()),
        };
        let timestamp = self.next_timestamp(device);
        self.known[device].insert(timestamp, change);
        timestamp
    }

    fn delete(&mut self, device: usize) -> Timestamp {
        let VisibleRow { row, columns } = VisibleRow::from_changes(&self.known[device]);
        let deleted = if row.is_live() { Timestamp::ZERO } else { row.tombstone() };
        let seen = columns.into_values().chain([row.newest_write(), deleted]);
        let seen = seen.filter(|timestamp| *timestamp != Timestamp::ZERO);
        let change = Change::Delete { table: "t".into(), key: vec![], replaced: seen.collect() };
        let timestamp = self.next_timestamp(device);
        self.known[device].insert(timestamp, change);
        timestamp
    }

    fn all(&self) -> RowChanges {
        self.known.iter().flatten().map(|(t, change)| (*t, change.clone())).collect()
    }

    fn sync(&mut self) {
        let all = self.all();
        self.known.fill(all);
    }

    #[track_caller]
    fn check(&mut self, expected: &[(Option<&str>, Timestamp, Timestamp)]) {
        self.sync();
        let expected = expected.iter().map(|&(column, lost, winner)| LostEdit {
            column: column.map(str::to_owned),
            lost,
            winner,
        });
        assert_eq!(lost_edits(&self.known[0]), expected.collect::<Vec<_>>());
    }
}

#[test]
fn of_two_edits_that_did_not_see_each_other_the_earlier_is_lost() {
    let mut devices = SimulatedDevices::new(2);
    devices.write(0, &[("a", 0), ("b", 0)]);
    devices.sync();
    devices.write(0, &[("a", 1)]);
    let lost = devices.write(0, &[("a", 2), ("b", 2)]);
    devices.write(1, &[("a", 3)]);
    let winner = devices.write(1, &[("a", 4)]);
    // There is one lost edit per cell: an edit replaced by its own author is not lost, and b is not
    // contested.
    devices.check(&[(Some("a"), lost, winner)]);
    // It stays lost when other devices continue from the winner.
    let later = devices.write(0, &[("a", 5)]);
    devices.check(&[(Some("a"), lost, later)]);
}

#[test]
fn what_was_restored_is_not_lost_even_after_later_edits() {
    let mut devices = SimulatedDevices::new(2);
    devices.write(0, &[("a", 1)]);
    devices.write(1, &[("a", 2)]);
    devices.sync();
    devices.write(0, &[("a", 1)]);
    devices.check(&[]);
    devices.write(1, &[("a", 7)]);
    devices.check(&[]);
}

#[test]
fn edits_with_one_value_do_not_contradict_each_other() {
    let mut devices = SimulatedDevices::new(2);
    devices.write(0, &[("a", 1)]);
    devices.write(1, &[("A", 1)]);
    devices.check(&[]);
    devices.write(0, &[("a", 2)]);
    let winner = devices.write(1, &[("A", 3)]);
    let lost = *devices.known[0].keys().nth(2).unwrap();
    devices.check(&[(Some("a"), lost, winner)]);
}

#[test]
fn an_edit_that_a_delete_did_not_see_is_lost() {
    let mut devices = SimulatedDevices::new(2);
    let first = devices.write(0, &[("a", 1), ("b", 1)]);
    devices.sync();
    let lost = devices.write(0, &[("b", 2)]);
    let winner = devices.delete(1);
    devices.check(&[(Some("b"), lost, winner)]);
    assert!(first < lost);
    // The author who revives the row has seen the delete, but not the edit.
    let revived = devices.write(1, &[("a", 3), ("b", 3)]);
    devices.check(&[(Some("b"), lost, revived)]);
}

#[test]
fn a_delete_that_an_edit_did_not_see_is_lost() {
    let mut devices = SimulatedDevices::new(2);
    devices.write(0, &[("a", 1)]);
    devices.sync();
    let lost = devices.delete(0);
    let winner = devices.write(1, &[("a", 2)]);
    devices.check(&[(None, lost, winner)]);
    devices.delete(1);
    devices.check(&[]);
    devices.write(0, &[("a", 9)]);
    devices.check(&[]);
}

#[test]
fn a_delete_of_what_its_author_had_just_made_takes_nothing_away() {
    let mut devices = SimulatedDevices::new(2);
    devices.delete(0);
    devices.write(1, &[("a", 1)]);
    devices.check(&[]);
}

#[test]
fn a_row_without_cells_is_lost_as_a_whole() {
    let mut devices = SimulatedDevices::new(2);
    devices.write(0, &[]);
    devices.sync();
    devices.delete(0);
    let lost = devices.write(0, &[]);
    let winner = devices.delete(1);
    devices.check(&[(None, lost, winner)]);
    devices.write(0, &[]);
    devices.check(&[]);
}

#[test]
fn a_baseline_is_lost_only_if_nobody_had_its_value() {
    let baseline = |millis, node| Timestamp::new(millis, 0, NodeId(node)).unwrap();
    let write = |value, replaced| Change::Write {
        table: "t".into(),
        key: vec![],
        cells: vec![CellWrite { column: "a".into(), value: Value::Integer(value), replaced }],
        replaced_tombstone: None,
    };
    let (here, there) = (baseline(1, 1), baseline(2, 2));
    let edit = baseline(1 << 40, 1);
    let mut changes = RowChanges::from([(here, write(0, None)), (there, write(0, None))]);
    changes.insert(edit, write(1, Some(here)));
    assert_eq!(lost_edits(&changes), []);
    changes.insert(there, write(5, None));
    let lost = LostEdit { column: Some("a".into()), lost: there, winner: edit };
    assert_eq!(lost_edits(&changes), [lost]);
}

#[derive(Clone, Debug)]
enum DeviceEdit {
    Write(usize, Vec<&'static str>, i64),
    Delete(usize),
    Sync,
}

fn any_step() -> impl Strategy<Value = DeviceEdit> {
    let columns = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3);
    prop_oneof![
        4 => (0usize..3, columns, 0i64..1_000)
            .prop_map(|(device, columns, value)| DeviceEdit::Write(device, columns, value)),
        1 => (0usize..3).prop_map(DeviceEdit::Delete),
        2 => Just(DeviceEdit::Sync),
    ]
}

fn play(steps: &[DeviceEdit], sync_always: bool) -> SimulatedDevices {
    let mut devices = SimulatedDevices::new(3);
    for step in steps {
        match step {
            DeviceEdit::Write(device, columns, value) => {
                let cells: Vec<_> = columns.iter().map(|column| (*column, *value)).collect();
                devices.write(*device, &cells);
            }
            DeviceEdit::Delete(device) => drop(devices.delete(*device)),
            DeviceEdit::Sync => devices.sync(),
        }
        if sync_always {
            devices.sync();
        }
    }
    devices
}

proptest! {
    #[test]
    fn edits_that_saw_all_before_them_lose_nothing(
        steps in prop::collection::vec(any_step(), 0..30),
    ) {
        prop_assert_eq!(lost_edits(&play(&steps, true).all()), []);
    }

    #[test]
    fn what_is_lost_is_not_shown_and_was_not_seen(
        steps in prop::collection::vec(any_step(), 0..30),
    ) {
        let mut devices = play(&steps, false);
        devices.sync();
        let all = devices.all();
        let state = VisibleRow::from_changes(&all);
        for LostEdit { column, lost, winner } in lost_edits(&all) {
            prop_assert!(lost < winner);
            prop_assert!(all.contains_key(&lost) && all.contains_key(&winner));
            if let Some(column) = column {
                let shown = state.columns[&column];
                prop_assert!(shown != lost || !state.row.is_live());
            }
        }
    }

    /// Each edit has its own value, so that nothing counts as restored. Then each end of a chain
    /// that does not win is listed, and the list is empty only if the chains had one end.
    #[test]
    fn two_edits_of_a_cell_that_did_not_see_each_other_give_one_lost_edit(
        before in prop::collection::vec(any_step(), 0..10), columns in 1usize..=3,
    ) {
        let mut devices = play(&before, true);
        let names = ["a", "b", "c"];
        let cells: Vec<_> = names[..columns].iter().map(|name| (*name, 2_000)).collect();
        let lost = devices.write(0, &cells);
        let cells: Vec<_> = names.iter().map(|name| (*name, 3_000)).collect();
        let winner = devices.write(1, &cells);
        let expected: Vec<_> =
            names[..columns].iter().map(|name| (Some(*name), lost, winner)).collect();
        devices.check(&expected);
    }
}
