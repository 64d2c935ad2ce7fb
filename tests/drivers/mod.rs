//! Driver scripts under real bash: the measured command lines, and scripts that misbehave.

mod foreign;
mod golden;
mod hostile;
mod misbehaving;
mod running;
mod sandbox;
mod shells;
mod stage;
mod trust;
