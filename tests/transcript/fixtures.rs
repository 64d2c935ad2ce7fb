//! Loads the captures of real programs: `tests/fixtures/<format>/<capture>.<stream>`.

use std::fs;
use std::path::Path;

use ralph::event::TranscriptEvent;
use ralph::transcript::{AdapterContext, find};

/// The prompt of the captured sessions, unless `<capture>.prompt` exists.
const PROMPT: &str = "Do the task described in README.md, then finish.";

pub(crate) struct Fixture {
    pub(crate) format: String,
    /// The name of the capture, including its stream.
    pub(crate) name: String,
    pub(crate) text: String,
    prompt: String,
}

impl Fixture {
    pub(crate) fn title(&self) -> String {
        format!("{}.{}", self.format, self.name)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.strip_suffix('\n').unwrap_or(&self.text).split('\n')
    }

    pub(crate) fn read(&self) -> Vec<TranscriptEvent> {
        let mut out = Vec::new();
        let mut adapter = self.open();
        for line in self.lines() {
            // A separate list for each line, as if it had arrived alone.
            let mut events = Vec::new();
            adapter.feed(line, &mut events);
            out.append(&mut events);
        }
        adapter.flush(&mut out);
        out
    }

    pub(crate) fn open(&self) -> Box<dyn ralph::transcript::Adapter> {
        let format = find(&self.format).expect("each fixture directory belongs to a format");
        (format.open)(&AdapterContext::new(&self.prompt))
    }
}

pub(crate) fn all() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut fixtures = Vec::new();
    for format in ralph::transcript::names() {
        let Ok(directory) = fs::read_dir(root.join(format)) else {
            continue;
        };
        for entry in directory {
            let path = entry.expect("the directory is readable").path();
            if path.extension().is_some_and(|extension| extension == "prompt") {
                continue;
            }
            fixtures.push(Fixture {
                format: format.to_owned(),
                name: file_name(&path),
                text: fs::read_to_string(&path).expect("the fixture is readable"),
                prompt: fs::read_to_string(path.with_extension("prompt"))
                    .unwrap_or_else(|_| PROMPT.to_owned()),
            });
        }
    }
    fixtures.sort_by_key(Fixture::title);
    fixtures
}

/// The fixture with this title.
pub(crate) fn fixture(title: &str) -> Fixture {
    let found = all().into_iter().find(|fixture| fixture.title() == title);
    found.unwrap_or_else(|| panic!("no fixture {title}"))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str());
    name.expect("the file name is UTF-8").to_owned()
}
