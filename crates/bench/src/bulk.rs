//! `warren bench bulk`
