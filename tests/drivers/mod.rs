//! Driver scripts under real bash: the measured command lines, and scripts that misbehave.

mod import;
mod golden;
mod hostile;
mod misbehaving;
mod runs;
mod sandbox;
mod shells;
mod fixture;
mod trust;
