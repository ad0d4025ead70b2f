use std::sync::mpsc;

use engine::EngineLimits;
use rusqlite::Connection;
use tempfile::TempDir;

use super::backlog::{
    SetAsideDelivery, SpoolBacklog, TOTAL_SQL, VAULT_SQL, VAULTS_SQL, VaultBacklog,
};
use super::schema::SPOOL_FILE;
use super::*;

const NOW_MS: u64 = 1_795_248_000_000;
const NOW_US: i64 = 1_795_248_000_000_000;

struct SpoolFixture {
    data: TempDir,
    databases: Databases,
    spool: MailSpool,
}

impl SpoolFixture {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap())
    }

    fn open(data: TempDir) -> Self {
        let databases = Databases::start(EngineLimits::default()).unwrap();
        let spool = MailSpool::open(&databases, data.path()).unwrap();
        Self { data, databases, spool }
    }

    fn reopen(self) -> Self {
        let Self { data, databases, spool } = self;
        drop(spool);
        databases.shutdown();
        Self::open(data)
    }

    /// Stores deliveries with these contents, all at [`NOW_MS`].
    fn deliver(&self, vault: &VaultId, sealed: &[&[u8]]) -> Vec<i64> {
        let deliver = |sealed: &&[u8]| deliver_one(&self.spool, vault, sealed, NOW_MS).unwrap();
        sealed.iter().map(deliver).collect()
    }

    fn seqs(&self, vault: &VaultId) -> Vec<i64> {
        self.spool.batch(vault, 0).unwrap().iter().map(|delivery| delivery.seq).collect()
    }
}

/// Stores one delivery, and returns its number.
fn deliver_one(spool: &MailSpool, vault: &VaultId, sealed: &[u8], now_ms: u64) -> Result<i64> {
    let deliveries = vec![(vault.clone(), sealed.to_vec())];
    Ok(spool.deliver_all(deliveries, now_ms).wait()?[0])
}

fn vault(number: u8) -> VaultId {
    VaultId::from_bytes(&[number; 16])
}

#[test]
fn a_number_is_the_time_or_one_more_than_the_last() {
    let SpoolFixture { spool, .. } = &SpoolFixture::new();
    let deliver = |now_ms| deliver_one(spool, &vault(1), &[1], now_ms).unwrap();
    assert_eq!(deliver(NOW_MS), NOW_US);
    assert_eq!(deliver(NOW_MS), NOW_US + 1);
    assert_eq!(deliver(NOW_MS + 1), NOW_US + 1_000);
    assert_eq!(deliver(NOW_MS - 5_000), NOW_US + 1_001, "the clock was set back");
    assert_eq!(deliver(0), NOW_US + 1_002);
}

#[test]
fn numbers_ascend_after_the_spool_was_emptied_and_opened_again() {
    let fixture = SpoolFixture::new();
    let last = *fixture.deliver(&vault(1), &[b"a", b"b"]).last().unwrap();
    fixture.spool.finish(&vault(1), last, 1).wait().unwrap();
    assert_eq!(fixture.seqs(&vault(1)), [0; 0]);
    let SpoolFixture { spool, .. } = &fixture.reopen();
    assert_eq!(deliver_one(spool, &vault(1), &[1], 0).unwrap(), last + 1);
}

#[test]
fn a_clock_beyond_all_numbers_is_an_error() {
    let SpoolFixture { spool, .. } = &SpoolFixture::new();
    assert_eq!(deliver_one(spool, &vault(1), &[1], u64::MAX).unwrap(), i64::MAX);
    deliver_one(spool, &vault(1), &[1], NOW_MS).unwrap_err();
    assert_eq!(spool.totals(NOW_MS).unwrap().waiting.count, 1);
}

#[test]
fn everything_is_kept_when_the_spool_is_opened_again() {
    let fixture = SpoolFixture::new();
    let seqs = fixture.deliver(&vault(1), &[b"a", b"b"]);
    let aside = fixture.deliver(&vault(2), &[b"c"])[0];
    assert!(fixture.spool.set_aside(&vault(2), aside, "wrong_key", NOW_MS).wait().unwrap());
    fixture.spool.finish(&vault(1), 0, 7).wait().unwrap();
    let SpoolFixture { spool, .. } = &fixture.reopen();
    let expected: Vec<_> = seqs
        .iter()
        .zip([b"a", b"b"])
        .map(|(&seq, sealed)| SpooledDelivery { seq, sealed: sealed.to_vec() })
        .collect();
    assert_eq!(spool.batch(&vault(1), 0).unwrap(), expected);
    assert_eq!(spool.set_aside_deliveries(0).unwrap().len(), 1);
    assert_eq!(spool.filed(&vault(1)).unwrap(), Some(FiledMark { seq: 0, modseq: 7 }));
}

#[test]
fn a_batch_has_the_deliveries_of_one_vault_above_a_number() {
    let fixture = SpoolFixture::new();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        one.extend(fixture.deliver(&vault(1), &[b"1"]));
        two.extend(fixture.deliver(&vault(2), &[b"2"]));
    }
    assert_eq!(fixture.seqs(&vault(1)), one);
    let batch = fixture.spool.batch(&vault(2), two[1]).unwrap();
    assert_eq!(batch.iter().map(|delivery| delivery.seq).collect::<Vec<_>>(), two[2..]);
    assert!(batch.iter().all(|delivery| delivery.sealed == b"2"));
    assert_eq!(fixture.spool.batch(&vault(3), 0).unwrap(), []);
}

#[test]
fn a_batch_ends_at_its_limits_but_has_at_least_one_delivery() {
    let fixture = SpoolFixture::new();
    let count = BATCH_COUNT_MAX as usize;
    let all = vec![(vault(1), vec![1]); count + 1];
    let seqs = fixture.spool.deliver_all(all, NOW_MS).wait().unwrap();
    assert_eq!(fixture.seqs(&vault(1)), seqs[..count]);
    let half = vec![0; usize::try_from(BATCH_BYTES_MAX).unwrap() / 2];
    let whole = vec![0; usize::try_from(BATCH_BYTES_MAX).unwrap() + 1];
    let large = fixture.deliver(&vault(2), &[&half, &half, b"", b"a", &whole, b""]);
    assert_eq!(fixture.seqs(&vault(2)), large[..3], "exactly the limit");
    let after = |place: usize| fixture.spool.batch(&vault(2), large[place]).unwrap();
    assert_eq!(after(2).len(), 1, "the next one has more than the limit");
    assert_eq!(after(3).len(), 1, "it comes alone");
    assert_eq!(after(4).len(), 1);
}

#[test]
fn the_deliveries_of_one_message_are_stored_together_or_not_at_all() {
    let SpoolFixture { spool, .. } = &SpoolFixture::new();
    let both = vec![(vault(1), vec![1]), (vault(2), vec![2])];
    assert_eq!(spool.deliver_all(both.clone(), NOW_MS).wait().unwrap(), [NOW_US, NOW_US + 1]);
    // Only one number is left.
    spool.deliver_all(both, u64::MAX).wait().unwrap_err();
    assert_eq!(spool.totals(NOW_MS).unwrap().waiting.count, 2);
    assert_eq!(deliver_one(spool, &vault(1), &[1], 0).unwrap(), NOW_US + 2);
}

#[test]
fn filing_deletes_the_deliveries_of_that_vault_only() {
    let fixture = SpoolFixture::new();
    let one = fixture.deliver(&vault(1), &[b"a", b"b"]);
    let two = fixture.deliver(&vault(2), &[b"c"]);
    let three = fixture.deliver(&vault(1), &[b"d"]);
    fixture.spool.finish(&vault(1), two[0], 4).wait().unwrap();
    assert!(one.iter().all(|seq| seq < &two[0]));
    assert_eq!((fixture.seqs(&vault(1)), fixture.seqs(&vault(2))), (three, two.clone()));
    let mark = FiledMark { seq: two[0], modseq: 4 };
    assert_eq!(fixture.spool.filed(&vault(1)).unwrap(), Some(mark));
    assert_eq!(fixture.spool.filed(&vault(2)).unwrap(), None);
}

#[test]
fn what_was_recorded_of_a_vault_never_decreases() {
    let SpoolFixture { spool, .. } = &SpoolFixture::new();
    let mark = || spool.filed(&vault(1)).unwrap().unwrap();
    spool.finish(&vault(1), 0, 3).wait().unwrap();
    assert_eq!(mark(), FiledMark { seq: 0, modseq: 3 });
    spool.finish(&vault(1), 20, 2).wait().unwrap();
    assert_eq!(mark(), FiledMark { seq: 20, modseq: 3 });
    spool.finish(&vault(1), 0, 5).wait().unwrap();
    spool.finish(&vault(1), 10, 6).wait().unwrap();
    assert_eq!(mark(), FiledMark { seq: 20, modseq: 6 });
}

#[test]
fn a_delivery_that_is_set_aside_waits_for_the_operator() {
    let fixture = SpoolFixture::new();
    let SpoolFixture { spool, .. } = &fixture;
    let seqs = fixture.deliver(&vault(1), &[b"first", b"second"]);
    let set_aside =
        |number| spool.set_aside(&vault(number), seqs[0], "wrong_key", 5).wait().unwrap();
    assert!(!set_aside(2), "it belongs to another vault");
    assert!(set_aside(1));
    assert!(!set_aside(1), "it was set aside");
    spool.finish(&vault(1), seqs[1], 1).wait().unwrap();
    let expected = SetAsideDelivery {
        seq: seqs[0],
        vault: vault(1),
        bytes: 5,
        reason: "wrong_key".into(),
        set_aside_ms: 5,
    };
    assert_eq!(spool.set_aside_deliveries(0).unwrap(), [expected]);
    assert_eq!(spool.set_aside_deliveries(seqs[0]).unwrap(), []);
    let totals = spool.totals(NOW_MS).unwrap();
    assert_eq!((totals.waiting.count, totals.set_aside.count, totals.set_aside.bytes), (0, 1, 5));
    assert!(spool.remove_set_aside(seqs[0]).wait().unwrap());
    assert!(!spool.remove_set_aside(seqs[0]).wait().unwrap());
    assert_eq!(spool.set_aside_deliveries(0).unwrap(), []);
}

#[test]
fn backlogs_add_up_what_waits() {
    let fixture = SpoolFixture::new();
    let SpoolFixture { spool, .. } = &fixture;
    let empty = SpoolBacklog { count: 0, bytes: 0, oldest_seq: None };
    assert_eq!(spool.totals(NOW_MS).unwrap().waiting, empty);
    let two = fixture.deliver(&vault(2), &[b"abc", b"de"])[0];
    let one = fixture.deliver(&vault(1), &[b"f"])[0];
    let backlog = |count, bytes, seq| SpoolBacklog { count, bytes, oldest_seq: Some(seq) };
    assert_eq!(spool.totals(NOW_MS).unwrap().waiting, backlog(3, 6, two));
    let younger = |now_ms| spool.totals(now_ms).unwrap().younger_counts;
    assert_eq!(younger(NOW_MS), [3, 3, 3]);
    assert_eq!(younger(NOW_MS + 2 * 3_600_000), [0, 3, 3]);
    assert_eq!(younger(NOW_MS + 8 * 86_400_000), [0, 0, 0]);
    assert_eq!(spool.backlog(&vault(2)).unwrap(), backlog(2, 5, two));
    assert_eq!(spool.backlog(&vault(3)).unwrap(), empty);
    let of = |number, backlog| VaultBacklog { vault: vault(number), backlog };
    let all = [of(1, backlog(1, 1, one)), of(2, backlog(2, 5, two))];
    assert_eq!(spool.backlogs(None).unwrap(), all);
    assert_eq!(spool.backlogs(Some(&vault(1))).unwrap(), all[1..]);
    spool.finish(&vault(2), two, 1).wait().unwrap();
    spool.finish(&vault(2), two, 1).wait().unwrap();
    assert_eq!(spool.totals(NOW_MS).unwrap().filed_count, 1);
}

#[test]
fn backlogs_are_read_from_the_index_alone() {
    let fixture = SpoolFixture::new();
    let db = Connection::open(fixture.data.path().join(SPOOL_FILE)).unwrap();
    for sql in [TOTAL_SQL, VAULT_SQL, VAULTS_SQL] {
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let mut rows = statement.raw_query();
        let mut plan = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            plan.push(row.get::<_, String>(3).unwrap());
        }
        let plan = plan.join("\n");
        assert!(plan.contains("USING COVERING INDEX delivery_by_vault"), "{sql}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}

#[test]
fn a_removed_vault_leaves_nothing() {
    let fixture = SpoolFixture::new();
    let SpoolFixture { spool, .. } = &fixture;
    for number in [1, 2] {
        let seqs = fixture.deliver(&vault(number), &[b"a", b"b", b"c"]);
        spool.finish(&vault(number), seqs[0], 1).wait().unwrap();
        spool.set_aside(&vault(number), seqs[1], "wrong_key", 1).wait().unwrap();
    }
    spool.remove_vault(&vault(1)).wait().unwrap();
    assert_eq!(fixture.seqs(&vault(1)), [0; 0]);
    assert_eq!(spool.filed(&vault(1)).unwrap(), None);
    assert_eq!(fixture.seqs(&vault(2)).len(), 1);
    assert!(spool.filed(&vault(2)).unwrap().is_some());
    let aside = spool.set_aside_deliveries(0).unwrap();
    assert_eq!(aside.iter().map(|delivery| &delivery.vault).collect::<Vec<_>>(), [&vault(2)]);
}

#[test]
fn deliveries_that_arrive_together_share_commits() {
    const COUNT: usize = 50;

    let SpoolFixture { spool, .. } = &SpoolFixture::new();
    let before = spool.database.stats();
    // The writer is busy until all have arrived.
    let (release, is_released) = mpsc::channel::<()>();
    let is_released = std::sync::Mutex::new(is_released);
    let blocker = spool.database.write(Durability::Os, move |_| {
        is_released.lock().unwrap().recv().unwrap();
        Ok::<_, Error>(())
    });
    let pending: Vec<_> =
        (0..COUNT).map(|_| spool.deliver_all(vec![(vault(1), vec![1; 2_000])], NOW_MS)).collect();
    release.send(()).unwrap();
    blocker.wait().unwrap();
    let mut seqs: Vec<_> = pending.into_iter().map(|one| one.wait().unwrap()).collect();
    seqs.dedup();
    assert!(seqs.is_sorted() && seqs.len() == COUNT);
    let after = spool.database.stats();
    let (batches, flushes) = (after.batches - before.batches, after.flushes - before.flushes);
    assert!(batches <= 10 && flushes <= 10, "{batches} batches and {flushes} flushes");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_wait_for_their_deliveries() {
    let SpoolFixture { spool, .. } = &SpoolFixture::new();
    let one = vec![(vault(1), vec![1])];
    assert_eq!(spool.deliver_all(one, NOW_MS).await.unwrap(), [NOW_US]);
}
