//! Driver scripts under real bash: the measured command lines, and scripts that misbehave.

mod golden;
mod hostile;
mod running;
mod sandbox;
mod stage;
mod trust;
