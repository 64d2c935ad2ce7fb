//! Snapshots of a project: takes them, compares them, and writes them to a directory.
//!
//! A snapshot contains every file below the project root that is not ignored, including the files of submodules and nested
//! repositories, with its content and permissions, and every directory. It is stored in a bare git repository of ralph's
//! own in the state directory. The user's repository is only read: its references, index, stash and configuration are
//! never changed.
//!
//! ralph lists and hashes the files itself, so that no setting of the repository (attributes, filters, sparse checkouts,
//! nested repositories) changes what is recorded, and an unchanged project starts no process. git stores, compares and
//! compresses the objects.

mod apply;
mod blobs;
mod checkout;
mod diff;
mod error;
mod git_files;
mod ignored;
mod import;
mod metadata;
mod restore;
mod scan;
mod store;
mod take;
mod tree;

pub use checkout::Checkout;
pub use diff::{ChangeKind, FileChange};
pub use error::SnapshotError;
pub use restore::{RestorePlan, RestoreReport, RestoreRequest, Restorer};
pub use store::{RESTORE_SUFFIX, SnapshotStore};
pub use take::{SnapshotRules, SnapshotTaker, TakenSnapshot};
pub use tree::{EntryKind, SnapshotId, SnapshotTree};
