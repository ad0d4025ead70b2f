//! Tests that the codecs read back exactly what they write.

use proptest::prelude::*;

use super::*;
use crate::codec::COLUMNS_COUNT_MAX;
use crate::{
    Collation, ColumnDeclaration, ColumnDefault, ForeignKeyAction, ForeignKeyDeclaration,
    IndexDeclaration, LeftOutKind, NodeId,
};

fn any_value() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        Just(Value::Null),
        Just(Value::Erased),
        any::<i64>().prop_map(Value::Integer),
        any::<f64>().prop_filter("NaN is NULL to SQLite", |f| !f.is_nan()).prop_map(Value::Real),
        any::<String>().prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Value::from_text_bytes(&bytes)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Blob),
        (any::<bool>(), 1..3 * crate::CHUNK_BYTES as u64, any::<[u8; 32]>()).prop_map(
            |(is_text, length, digest)| {
                let count = length.div_ceil(crate::CHUNK_BYTES as u64);
                let chunks = (0..count).map(|_| digest).collect();
                Value::Large(crate::LargeValue { is_text, length, chunks })
            }
        ),
    ]
}

/// There are only a few timestamps, so that cells share them.
fn any_seen() -> impl Strategy<Value = Timestamp> + Clone {
    (1u64..4).prop_map(|millis| Timestamp::new(millis, 0, NodeId(1)).unwrap())
}

fn any_declaration() -> impl Strategy<Value = TableDeclaration> {
    let collation =
        || prop::sample::select(vec![Collation::Binary, Collation::NoCase, Collation::Rtrim]);
    let default = prop_oneof![
        any_value().prop_map(ColumnDefault::Literal),
        Just(ColumnDefault::Time),
        Just(ColumnDefault::Date),
        Just(ColumnDefault::Timestamp),
        Just(ColumnDefault::Computed),
    ];
    let default = prop::option::of(default);
    let column = (any::<String>(), any::<String>(), any::<bool>(), collation(), default).prop_map(
        |(name, declared_type, is_not_null, collation, default)| ColumnDeclaration {
            name,
            declared_type,
            is_not_null,
            collation,
            default,
        },
    );
    let index =
        (any::<String>(), any::<bool>(), prop::collection::vec((0usize..2, collation()), 0..3))
            .prop_map(|(name, is_unique, columns)| IndexDeclaration { name, is_unique, columns });
    let action = || {
        use ForeignKeyAction as A;
        prop::sample::select(vec![A::None, A::Restrict, A::SetNull, A::SetDefault, A::Cascade])
    };
    let places = || prop::collection::vec(0usize..2, 0..3);
    let names = prop::collection::vec(any::<String>(), 0..3);
    let reference = (places(), any::<String>(), names, action(), action()).prop_map(
        |(columns, parent, parent_columns, on_delete, on_update)| ForeignKeyDeclaration {
            columns,
            parent,
            parent_columns,
            on_delete,
            on_update,
        },
    );
    let left_out_kind = prop::sample::select(vec![
        LeftOutKind::Trigger,
        LeftOutKind::View,
        LeftOutKind::Check,
        LeftOutKind::GeneratedColumn,
        LeftOutKind::UniqueIndex,
    ]);
    (
        prop::collection::vec(column, 2..4),
        places(),
        any::<[bool; 3]>(),
        prop::collection::vec(index, 0..3),
        prop::collection::vec(reference, 0..3),
        prop::collection::vec((left_out_kind, any::<String>()), 0..3),
    )
        .prop_map(|(columns, key, flags, indexes, foreign_keys, left_out)| TableDeclaration {
            columns,
            key,
            is_autoincrement: flags[0],
            is_strict: flags[1],
            is_without_rowid: flags[2],
            indexes,
            foreign_keys,
            left_out: left_out
                .into_iter()
                .map(|(kind, name)| crate::LeftOut { kind, name })
                .collect(),
        })
}

fn any_change() -> impl Strategy<Value = Change> {
    let key = prop::collection::vec(any_value(), 0..4);
    let replaced = prop::option::of(any_seen());
    let cell = (any::<String>(), any_value(), replaced.clone())
        .prop_map(|(column, value, replaced)| CellWrite { column, value, replaced });
    let cells = prop::collection::vec(cell, 0..6);
    let seen = prop::collection::btree_set(any_seen(), 0..4);
    prop_oneof![
        (any::<String>(), key.clone(), cells, replaced).prop_map(|(table, key, cells, deleted)| {
            Change::Write { table, key, cells, replaced_tombstone: deleted }
        }),
        (any::<String>(), key, seen).prop_map(|(table, key, seen)| Change::Delete {
            table,
            key,
            replaced: seen
        }),
        (any::<String>(), any_declaration())
            .prop_map(|(table, declaration)| Change::TableDeclaration { table, declaration }),
        Just(Change::Erased),
    ]
}

proptest! {
    #[test]
    fn every_change_round_trips(change in any_change()) {
        prop_assert_eq!(Change::decode(&change.encode()).unwrap(), change);
    }

    #[test]
    fn decoding_accepts_only_what_encoding_writes(
        change in any_change(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = change.encode().to_vec();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(decoded) = Change::decode(&bytes) {
            prop_assert_eq!(&decoded.encode()[..], &bytes[..]);
        }
    }

    #[test]
    fn a_cut_or_lengthened_content_is_malformed(change in any_change(), cut in any::<prop::sample::Index>()) {
        let bytes = change.encode();
        let cut = cut.index(bytes.len());
        prop_assert_eq!(Change::decode(&bytes[..cut]), Err(DecodeError::Malformed));
        let longer = [&bytes[..], &[0]].concat();
        prop_assert_eq!(Change::decode(&longer), Err(DecodeError::Malformed));
    }

    #[test]
    fn keys_round_trip(key in prop::collection::vec(any_value(), 0..4)) {
        prop_assert_eq!(Value::decode_key(&Value::encode_key(&key)).unwrap(), key);
    }
}

#[test]
fn the_bytes_are_the_documented_ones() {
    let cell = |column: &str, value, replaced| CellWrite { column: column.into(), value, replaced };
    let at = |millis| Timestamp::new(millis, 0, NodeId(7)).unwrap();
    let insert = Change::Write {
        table: "t".into(),
        key: vec![Value::Integer(-1)],
        cells: vec![cell("a", Value::Null, None), cell("b", Value::Text("x".into()), None)],
        replaced_tombstone: None,
    };
    let expected = [1, 1, 1, b't', 1, 1, 1, 2, 1, b'a', 0, 1, b'b', 3, 1, b'x', 0];
    assert_eq!(insert.encode()[..], expected);

    let cells = vec![
        cell("a", Value::Null, Some(at(9))),
        cell("b", Value::Null, None),
        cell("c", Value::Null, Some(at(5))),
        cell("d", Value::Null, Some(at(9))),
    ];
    let update =
        Change::Write { table: "t".into(), key: vec![], cells, replaced_tombstone: Some(at(6)) }
            .encode();
    let head = [1, 1, 1, b't', 0, 4, 1, b'a', 0, 1, b'b', 0, 1, b'c', 0, 1, b'd', 0, 3];
    let groups = [(6, &[0][..]), (5, &[1, 2]), (9, &[2, 0, 3])];
    let groups = groups.map(|(millis, places)| [&at(millis).to_bytes()[..], places].concat());
    assert_eq!(update[..], [&head[..], &groups.concat()].concat());

    let declaration = TableDeclaration {
        columns: vec![
            ColumnDeclaration { name: "id".into(), is_not_null: true, ..Default::default() },
            ColumnDeclaration {
                name: "a".into(),
                declared_type: "INT".into(),
                collation: Collation::NoCase,
                default: Some(ColumnDefault::Literal(Value::Integer(1))),
                ..Default::default()
            },
        ],
        key: vec![0],
        is_without_rowid: true,
        indexes: vec![IndexDeclaration {
            name: "i".into(),
            is_unique: true,
            columns: vec![(1, Collation::Rtrim)],
        }],
        foreign_keys: vec![ForeignKeyDeclaration {
            columns: vec![1],
            parent: "p".into(),
            on_delete: ForeignKeyAction::Cascade,
            ..Default::default()
        }],
        ..Default::default()
    };
    let schema = Change::TableDeclaration { table: "t".into(), declaration };
    let columns = [2, 2, b'i', b'd', 0, 1, 0, 0, 1, b'a', 3, b'I', b'N', b'T', 0, 1, 1, 1, 2];
    let rest = [1, 0, 1, 1, b'i', 1, 1, 1, 2, 1, 1, 1, 1, b'p', 0, 4, 0];
    assert_eq!(schema.encode()[..], [&[1, 3, 1, b't', 2][..], &columns, &rest].concat());

    let delete = Change::Delete { table: "t".into(), key: vec![], replaced: [at(9), at(5)].into() };
    let expected = [&[1, 2, 1, b't', 0, 2][..], &at(5).to_bytes(), &at(9).to_bytes()].concat();
    assert_eq!(delete.encode()[..], expected);
}

#[test]
fn groups_in_another_order_or_form_are_malformed() {
    let at = |millis| Timestamp::new(millis, 0, NodeId(7)).unwrap().to_bytes();
    let head = [1, 1, 1, b't', 0, 2, 1, b'a', 0, 1, b'b', 0];
    let decode = |groups: &[(u64, &[u8])]| {
        let mut bytes = head.to_vec();
        bytes.push(u8::try_from(groups.len()).unwrap());
        for (millis, places) in groups {
            bytes.extend(at(*millis));
            bytes.extend(*places);
        }
        Change::decode(&bytes)
    };
    assert!(decode(&[(5, &[1, 0]), (6, &[1, 1])]).is_ok());
    assert!(decode(&[(7, &[0]), (5, &[1, 0]), (6, &[1, 1])]).is_ok());
    for bad in [
        &[(6, &[1, 0][..]), (5, &[1, 1])][..],
        &[(5, &[1, 0]), (5, &[1, 1])],
        &[(5, &[1, 0]), (6, &[1, 0])],
        &[(5, &[2, 1, 0])],
        &[(5, &[2, 0, 0])],
        &[(5, &[1, 2])],
        &[(5, &[1, 0]), (6, &[0])],
        &[(5, &[0]), (6, &[0])],
    ] {
        assert_eq!(decode(bad), Err(DecodeError::Malformed), "{bad:?}");
    }
    let twice = [&[1, 2, 1, b't', 0, 2][..], &at(5), &at(5)].concat();
    assert_eq!(Change::decode(&twice), Err(DecodeError::Malformed));
}

#[test]
fn a_later_version_is_told_apart_from_damage() {
    assert_eq!(Change::decode(&[2, 1]), Err(DecodeError::Version(2)));
    assert_eq!(Change::decode(&[1, 9, 0]), Err(DecodeError::Malformed));
    assert_eq!(Change::decode(&[]), Err(DecodeError::Malformed));
}

#[test]
fn a_count_beyond_the_limit_is_refused_before_anything_is_read() {
    let mut bytes = vec![1, 2, 1, b't'];
    put_varint(&mut bytes, COLUMNS_COUNT_MAX + 1);
    bytes.extend(std::iter::repeat_n(0, 3_000));
    assert_eq!(Change::decode(&bytes), Err(DecodeError::Malformed));
}
