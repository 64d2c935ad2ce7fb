//! Tests of driver scripts with a real bash: recorded command lines, misbehaving scripts, trust, and imports.

mod faulty_script_runs;
mod faulty_scripts;
mod fixture;
mod golden;
mod import;
mod runs;
mod sandbox;
mod shells;
mod trust;
