//! What the fuzzer holds to be true of any input, tried on the inputs that it begins with: the fuzzed code cannot drift
//! away from the program, and its claims are true of every real capture.

#[expect(unreachable_pub, reason = "in the fuzzer's own crate they are public")]
#[path = "../../fuzz/src/lib.rs"]
mod property;

use std::fs;
use std::path::Path;

use ralph::config::ImportedFile;

use crate::transcript::fixtures;

#[test]
fn every_capture_holds_to_what_must_hold_for_any_bytes() {
    for fixture in fixtures::all() {
        if fixture.format != "jq" {
            property::transcript(&fixture.format, fixture.text.as_bytes());
        }
    }
}

#[test]
fn so_do_the_seeds_of_every_other_target() {
    let seeds = |target: &str| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/seeds")
            .join(target);
        let files = fs::read_dir(directory).expect("seeds for every target");
        let read =
            |file: std::io::Result<fs::DirEntry>| fs::read(file.expect("a seed").path()).expect("a seed");
        files.map(read).collect::<Vec<_>>()
    };
    seeds("claims").iter().for_each(|seed| property::claims(seed));
    seeds("config").iter().for_each(|seed| property::config(seed));
    seeds("ralphrc")
        .iter()
        .for_each(|seed| property::foreign(ImportedFile::Ralphrc, seed));
    seeds("ralphex")
        .iter()
        .for_each(|seed| property::foreign(ImportedFile::Ralphex, seed));
    seeds("journal").iter().for_each(|seed| property::journal(seed));
    seeds("jq").iter().for_each(|seed| property::filter(seed));
}
