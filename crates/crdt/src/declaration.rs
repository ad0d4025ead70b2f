//! Represents a table as a device declares it: names, types and rules as data. Each receiver writes
//! its own SQL; no statement ever comes from another device.
//!
//! Expressions of SQLite are left out: a CHECK, a generated column, a computed default, or an index
//! with a condition stays in its file; [`TableDeclaration::left_out`] names them.

use std::fmt;

use crate::Value;
use crate::codec::{ByteReader, DecodeError, put_bytes, put_varint};
use crate::value::put_value;

/// The declaration of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableDeclaration {
    /// The columns in the table's order, without generated ones.
    pub columns: Vec<ColumnDeclaration>,
    /// The primary key's columns in the key's order, as places in `columns`.
    pub key: Vec<usize>,
    /// Whether new keys are never those of deleted rows (AUTOINCREMENT).
    pub is_autoincrement: bool,
    /// Whether columns accept only values of their types (STRICT).
    pub is_strict: bool,
    /// Whether the key is the table's own order (WITHOUT ROWID).
    pub is_without_rowid: bool,
    /// The UNIQUE constraints and indexes, except the primary key's.
    pub indexes: Vec<IndexDeclaration>,
    /// The foreign keys.
    pub foreign_keys: Vec<ForeignKeyDeclaration>,
    /// The other parts of the table in the device's file, which are not declared.
    pub left_out: Vec<LeftOut>,
}

/// A part of a table that stays in its file, because it is SQL: only its name is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The kind of part.
    pub kind: LeftOutKind,
    /// The name of the part, or the expression of a CHECK.
    pub name: String,
}

/// The kind of a part that a declaration leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutKind {
    /// A trigger of the table.
    Trigger,
    /// A view that names the table.
    View,
    /// A CHECK of the table or of a column.
    Check,
    /// A generated column.
    GeneratedColumn,
    /// A UNIQUE index with a condition, of expressions, or with a collation that is not built in.
    UniqueIndex,
}

impl LeftOutKind {
    const ALL: [(Self, &str); 5] = [
        (Self::Trigger, "trigger"),
        (Self::View, "view"),
        (Self::Check, "check"),
        (Self::GeneratedColumn, "generated_column"),
        (Self::UniqueIndex, "unique_index"),
    ];

    /// Returns the name of the kind for programs.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns whether the part restricts the rows that a table can hold.
    pub fn is_constraint(self) -> bool {
        !matches!(self, Self::Trigger | Self::View)
    }

    fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        one_of(&Self::ALL, reader)
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.kind {
            LeftOutKind::Trigger => write!(f, "trigger {name}"),
            LeftOutKind::View => write!(f, "view {name}"),
            LeftOutKind::Check => write!(f, "CHECK ({name})"),
            LeftOutKind::GeneratedColumn => write!(f, "generated column {name}"),
            LeftOutKind::UniqueIndex => write!(f, "UNIQUE index {name}"),
        }
    }
}

/// The declaration of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnDeclaration {
    /// The name of the column.
    pub name: String,
    /// The type as declared, which may be empty. It may be any text and must be checked before it
    /// becomes SQL.
    pub declared_type: String,
    /// Whether the column is NOT NULL.
    pub is_not_null: bool,
    /// The collation of the column (COLLATE).
    pub collation: Collation,
    /// The default of the column (DEFAULT).
    pub default: Option<ColumnDefault>,
}

/// One of SQLite's own three rules for comparing texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collation {
    /// Compares texts by their bytes.
    #[default]
    Binary,
    /// Treats the letters A to Z as a to z.
    NoCase,
    /// Ignores spaces at the end.
    Rtrim,
}

/// The value of a column if an INSERT gives none.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnDefault {
    /// A default that is a literal.
    Literal(Value),
    /// The present time (`CURRENT_TIME`), in UTC.
    Time,
    /// The present date (`CURRENT_DATE`), in UTC.
    Date,
    /// The present date and time (`CURRENT_TIMESTAMP`), in UTC.
    Timestamp,
    /// An expression, which is not sent.
    Computed,
}

/// An index over all rows that consists of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexDeclaration {
    /// The name of the index; empty for a UNIQUE constraint of the table.
    pub name: String,
    /// Whether the index is UNIQUE.
    pub is_unique: bool,
    /// The places of the columns in [`TableDeclaration::columns`], each with its collation.
    pub columns: Vec<(usize, Collation)>,
}

/// The declaration of a foreign key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignKeyDeclaration {
    /// The places of the columns in [`TableDeclaration::columns`].
    pub columns: Vec<usize>,
    /// The table that the foreign key refers to.
    pub parent: String,
    /// The referenced columns of that table; empty for its primary key.
    pub parent_columns: Vec<String>,
    /// The action for a deleted parent (ON DELETE).
    pub on_delete: ForeignKeyAction,
    /// The action for a changed parent key (ON UPDATE).
    pub on_update: ForeignKeyAction,
}

/// The action of a foreign key when the referenced row is deleted or its key changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignKeyAction {
    /// Rejects the change at the end of the transaction.
    #[default]
    None,
    /// Rejects the change at once.
    Restrict,
    /// Sets the referring columns to NULL.
    SetNull,
    /// Sets the referring columns to their defaults.
    SetDefault,
    /// Applies the change to the referring row, too.
    Cascade,
}

impl Collation {
    const ALL: [(Self, &str); 3] =
        [(Self::Binary, "BINARY"), (Self::NoCase, "NOCASE"), (Self::Rtrim, "RTRIM")];

    /// Returns SQLite's name of the collation.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the collation with this name in SQLite, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(collation, _)| collation)
    }
}

impl ForeignKeyAction {
    const ALL: [(Self, &str); 5] = [
        (Self::None, "NO ACTION"),
        (Self::Restrict, "RESTRICT"),
        (Self::SetNull, "SET NULL"),
        (Self::SetDefault, "SET DEFAULT"),
        (Self::Cascade, "CASCADE"),
    ];

    /// Returns SQLite's keywords for the action.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the action with these keywords in SQLite.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(action, _)| action)
    }
}

const STRICT: u8 = 1;
const WITHOUT_ROWID: u8 = 2;
const AUTOINCREMENT: u8 = 4;
const LEFT_OUT: u8 = 8;

impl TableDeclaration {
    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        let flags = [
            (self.is_strict, STRICT),
            (self.is_without_rowid, WITHOUT_ROWID),
            (self.is_autoincrement, AUTOINCREMENT),
            (!self.left_out.is_empty(), LEFT_OUT),
        ];
        bytes.push(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        put_list(bytes, &self.columns, |bytes, column| column.put(bytes));
        put_places(bytes, &self.key);
        put_list(bytes, &self.indexes, |bytes, index| {
            put_bytes(bytes, index.name.as_bytes());
            bytes.push(index.is_unique.into());
            put_list(bytes, &index.columns, |bytes, (place, collation)| {
                put_varint(bytes, *place as u64);
                bytes.push(*collation as u8);
            });
        });
        put_list(bytes, &self.foreign_keys, |bytes, reference| {
            put_places(bytes, &reference.columns);
            put_bytes(bytes, reference.parent.as_bytes());
            put_list(bytes, &reference.parent_columns, |bytes, name| {
                put_bytes(bytes, name.as_bytes());
            });
            bytes.extend([reference.on_delete as u8, reference.on_update as u8]);
        });
        if !self.left_out.is_empty() {
            put_list(bytes, &self.left_out, |bytes, left_out| {
                bytes.push(left_out.kind as u8);
                put_bytes(bytes, left_out.name.as_bytes());
            });
        }
    }

    pub(crate) fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        let flags = reader.byte()?;
        if flags > STRICT | WITHOUT_ROWID | AUTOINCREMENT | LEFT_OUT {
            return Err(DecodeError::Malformed);
        }
        let columns = reader.list(ColumnDeclaration::read)?;
        let count = columns.len();
        let place = |reader: &mut ByteReader<'_>| read_place(reader, count);
        let index = |reader: &mut ByteReader<'_>| {
            let name = reader.text()?;
            let is_unique = reader.bool()?;
            let columns = reader.list(|reader| Ok((place(reader)?, Collation::read(reader)?)))?;
            Ok(IndexDeclaration { name, is_unique, columns })
        };
        let reference = |reader: &mut ByteReader<'_>| {
            Ok(ForeignKeyDeclaration {
                columns: reader.list(place)?,
                parent: reader.text()?,
                parent_columns: reader.list(ByteReader::text)?,
                on_delete: ForeignKeyAction::read(reader)?,
                on_update: ForeignKeyAction::read(reader)?,
            })
        };
        let left_out = |reader: &mut ByteReader<'_>| {
            Ok(LeftOut { kind: LeftOutKind::read(reader)?, name: reader.text()? })
        };
        let read = Self {
            columns,
            key: reader.list(place)?,
            is_strict: flags & STRICT != 0,
            is_without_rowid: flags & WITHOUT_ROWID != 0,
            is_autoincrement: flags & AUTOINCREMENT != 0,
            indexes: reader.list(index)?,
            foreign_keys: reader.list(reference)?,
            left_out: if flags & LEFT_OUT == 0 { Vec::new() } else { reader.list(left_out)? },
        };
        // An empty list has only one encoding.
        let is_said = flags & LEFT_OUT != 0;
        if is_said == read.left_out.is_empty() {
            return Err(DecodeError::Malformed);
        }
        Ok(read)
    }
}

const DEFAULT_NONE: u8 = 0;
const DEFAULT_LITERAL: u8 = 1;
const DEFAULT_TIME: u8 = 2;
const DEFAULT_DATE: u8 = 3;
const DEFAULT_TIMESTAMP: u8 = 4;
const DEFAULT_COMPUTED: u8 = 5;

impl ColumnDeclaration {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_bytes(bytes, self.name.as_bytes());
        put_bytes(bytes, self.declared_type.as_bytes());
        bytes.extend([self.is_not_null.into(), self.collation as u8]);
        match &self.default {
            None => bytes.push(DEFAULT_NONE),
            Some(ColumnDefault::Literal(value)) => {
                bytes.push(DEFAULT_LITERAL);
                put_value(bytes, value);
            }
            Some(ColumnDefault::Time) => bytes.push(DEFAULT_TIME),
            Some(ColumnDefault::Date) => bytes.push(DEFAULT_DATE),
            Some(ColumnDefault::Timestamp) => bytes.push(DEFAULT_TIMESTAMP),
            Some(ColumnDefault::Computed) => bytes.push(DEFAULT_COMPUTED),
        }
    }

    fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: reader.text()?,
            declared_type: reader.text()?,
            is_not_null: reader.bool()?,
            collation: Collation::read(reader)?,
            default: match reader.byte()? {
                DEFAULT_NONE => None,
                DEFAULT_LITERAL => Some(ColumnDefault::Literal(reader.value()?)),
                DEFAULT_TIME => Some(ColumnDefault::Time),
                DEFAULT_DATE => Some(ColumnDefault::Date),
                DEFAULT_TIMESTAMP => Some(ColumnDefault::Timestamp),
                DEFAULT_COMPUTED => Some(ColumnDefault::Computed),
                _ => return Err(DecodeError::Malformed),
            },
        })
    }
}

impl Collation {
    fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        one_of(&Self::ALL, reader)
    }
}

impl ForeignKeyAction {
    fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        one_of(&Self::ALL, reader)
    }
}

fn one_of<T: Copy>(all: &[(T, &str)], reader: &mut ByteReader<'_>) -> Result<T, DecodeError> {
    let found = all.get(usize::from(reader.byte()?));
    found.map(|(one, _)| *one).ok_or(DecodeError::Malformed)
}

fn put_list<T>(bytes: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_varint(bytes, list.len() as u64);
    for item in list {
        put(bytes, item);
    }
}

fn put_places(bytes: &mut Vec<u8>, places: &[usize]) {
    put_list(bytes, places, |bytes, place| put_varint(bytes, *place as u64));
}

fn read_place(reader: &mut ByteReader<'_>, count: usize) -> Result<usize, DecodeError> {
    let place = usize::try_from(reader.varint()?).ok().filter(|place| *place < count);
    place.ok_or(DecodeError::Malformed)
}
