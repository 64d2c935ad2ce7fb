//! Driver scripts under real bash: the measured command lines, and scripts that misbehave.

mod fixture;
mod golden;
mod hostile;
mod import;
mod misbehaving;
mod runs;
mod sandbox;
mod shells;
mod trust;
