//! Runs the properties of the fuzz targets on their seeds and on every captured transcript, so that the fuzzed code keeps
//! compiling and its properties hold for real input.

#[expect(unreachable_pub, reason = "public items of the fuzz crate")]
#[path = "../../fuzz/src/lib.rs"]
mod property;

use std::fs;
use std::path::Path;

use ralph::config::ImportedFile;

use crate::transcript::fixtures;

#[test]
fn every_capture_satisfies_the_transcript_property() {
    for fixture in fixtures::all() {
        if fixture.format != "jq" {
            property::transcript(&fixture.format, fixture.text.as_bytes());
        }
    }
}

#[test]
fn the_seeds_of_every_other_target_satisfy_its_property() {
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
        .for_each(|seed| property::imported_config(ImportedFile::Ralphrc, seed));
    seeds("ralphex")
        .iter()
        .for_each(|seed| property::imported_config(ImportedFile::Ralphex, seed));
    seeds("journal").iter().for_each(|seed| property::journal(seed));
    seeds("jq").iter().for_each(|seed| property::jq_filter(seed));
}
