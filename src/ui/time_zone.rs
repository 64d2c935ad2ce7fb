//! The time zone of the machine.

use std::path::Path;

use jiff::tz::TimeZone;

const LOCAL_TIME: &str = "/etc/localtime";

/// The machine's time zone. Unlike `TimeZone::system`, it reads one file instead of the directory of all zones, which
/// takes milliseconds at every start. If `TZ` names a zone, that directory is needed.
pub fn local_time_zone() -> TimeZone {
    match std::env::var_os("TZ") {
        None => zone_of_file(Path::new(LOCAL_TIME)).unwrap_or_else(TimeZone::system),
        Some(_) => TimeZone::system(),
    }
}

/// The zone in a file, with the name that a link to it has.
fn zone_of_file(path: &Path) -> Option<TimeZone> {
    let data = std::fs::read(path).ok()?;
    let target = std::fs::canonicalize(path).ok()?;
    let name = target
        .to_str()
        .and_then(|target| Some(target.split_once("zoneinfo/")?.1));
    TimeZone::tzif(name.unwrap_or("Local"), &data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_a_zone_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("localtime");
        assert!(zone_of_file(&path).is_none());
        std::fs::write(&path, "not a time zone").unwrap();
        assert!(zone_of_file(&path).is_none());
    }

    #[test]
    fn local_zone_equals_the_systems_zone() {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let (local, system) = (local_time_zone(), TimeZone::system());
        assert_eq!(local.to_offset(at), system.to_offset(at));
    }
}
