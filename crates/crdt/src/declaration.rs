//! A table as a device declares it: names, types and rules as data. Whoever receives it writes their
//! own SQL; no statement ever comes from elsewhere.
//!
//! What SQLite has and this has not: expressions. A CHECK, a generated column, a computed default,
//! an index with a condition stay where they are; [`TableDeclaration::left_out`] names them.

use std::fmt;

use crate::Value;
use crate::codec::{ByteReader, DecodeError, put_bytes, put_varint};
use crate::value::put_value;

/// A table's declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableDeclaration {
    /// In the table's order, without generated ones.
    pub columns: Vec<ColumnDeclaration>,
    /// The primary key's columns, in the key's order: places in `columns`.
    pub key: Vec<usize>,
    /// Whether new keys are never those of deleted rows (AUTOINCREMENT).
    pub is_autoincrement: bool,
    /// Whether columns take values of their types only (STRICT).
    pub is_strict: bool,
    /// Whether the key is the table's own order (WITHOUT ROWID).
    pub is_without_rowid: bool,
    /// UNIQUE constraints and indexes, but for the primary key's.
    pub indexes: Vec<IndexDeclaration>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKeyDeclaration>,
    /// What else the device's file has for the table.
    pub left_out: Vec<LeftOut>,
}

/// What stays with the file that has it, since it is SQL: only its name is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// What it is.
    pub kind: LeftOutKind,
    /// Its name; the expression of a CHECK.
    pub name: String,
}

/// What a declaration leaves out.
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
    /// A UNIQUE index with a condition, of expressions, or with a collation that is not SQLite's own.
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

    /// As programs see it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Whether it says which rows a table can hold.
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

/// A column's declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnDeclaration {
    /// Its name.
    pub name: String,
    /// As it is declared, perhaps empty. Any text: to be checked before it becomes SQL.
    pub declared_type: String,
    /// NOT NULL
    pub is_not_null: bool,
    /// COLLATE
    pub collation: Collation,
    /// DEFAULT
    pub default: Option<ColumnDefault>,
}

/// How texts are compared; SQLite's own three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collation {
    /// Bytes.
    #[default]
    Binary,
    /// The letters A to Z are a to z.
    NoCase,
    /// Spaces at the end do not count.
    Rtrim,
}

/// What a column is if nothing is said.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnDefault {
    /// A literal.
    Literal(Value),
    /// `CURRENT_TIME`, UTC
    Time,
    /// `CURRENT_DATE`, UTC
    Date,
    /// `CURRENT_TIMESTAMP`, UTC
    Timestamp,
    /// An expression, which stays where it is.
    Computed,
}

/// An index over all rows, of columns as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexDeclaration {
    /// Empty for a UNIQUE constraint of the table's.
    pub name: String,
    /// UNIQUE
    pub is_unique: bool,
    /// Places in [`TableDeclaration::columns`], each with how it is compared.
    pub columns: Vec<(usize, Collation)>,
}

/// A foreign key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignKeyDeclaration {
    /// Places in [`TableDeclaration::columns`].
    pub columns: Vec<usize>,
    /// The table that it refers to.
    pub parent: String,
    /// That table's columns; none for its primary key.
    pub parent_columns: Vec<String>,
    /// ON DELETE
    pub on_delete: ForeignKeyAction,
    /// ON UPDATE
    pub on_update: ForeignKeyAction,
}

/// What becomes of a row when the one that it refers to goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignKeyAction {
    /// Refused at the end of the transaction.
    #[default]
    None,
    /// Refused at once.
    Restrict,
    /// Its columns become NULL.
    SetNull,
    /// Its columns become their defaults.
    SetDefault,
    /// It goes, too.
    Cascade,
}

impl Collation {
    const ALL: [(Self, &str); 3] =
        [(Self::Binary, "BINARY"), (Self::NoCase, "NOCASE"), (Self::Rtrim, "RTRIM")];

    /// SQLite's name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The one with SQLite's name, in any case.
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

    /// SQLite's words.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The one with SQLite's words.
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
        // Only one way to say that there is nothing.
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
