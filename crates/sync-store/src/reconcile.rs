//! The server's side of comparing two sets of messages (`docs/formats/8-reconcile.md`).
