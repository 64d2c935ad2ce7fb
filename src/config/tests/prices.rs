//! Tests of the price list and its error messages.

use super::ConfigFixture;
use crate::config::{PriceList, load_prices};
use crate::policy::Price;

fn read(text: &str) -> Result<PriceList, String> {
    let fixture = ConfigFixture::new().write("project/prices.yml", text);
    load_prices(&fixture.path("project/prices.yml")).map_err(|error| fixture.redact(&error))
}

fn error_for(text: &str) -> String {
    read(text).map_or_else(|error| error, |_| "no error".to_owned())
}

#[test]
fn prices_are_read_by_model() {
    let list = read(
        "models:\n  \"claude-opus-*\": { input: 15, output: 75, cache_read: 1.5, cache_write: 18.75 }\n  gpt-5.1:\n    input: 1.25\n    output: 10\n",
    );
    let list = list.unwrap();
    let opus = Price {
        input: 15.0,
        output: 75.0,
        cache_read: Some(1.5),
        cache_write: Some(18.75),
    };
    assert_eq!(list["claude-opus-*"], opus);
    assert_eq!(list["gpt-5.1"].cache_read, None);
    assert_eq!(read("models:\n"), Ok(PriceList::new()));
}

#[test]
fn documented_price_list_loads() {
    let manual = include_str!("../../../docs/config.md");
    let (_, rest) = manual.split_once("`prices.yml`").expect("a chapter on prices");
    let example = rest
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert!(!read(example.expect("an example")).unwrap().is_empty());
}

#[test]
fn invalid_prices_are_reported_at_their_location() {
    insta::assert_snapshot!(error_for("models:\n  gpt-5.1: { input: 1, ouput: 2 }\n"), @"
    `models.gpt-5.1.ouput`: unknown key
     --> /tmp/x/project/prices.yml:2:24
      |
    2 |   gpt-5.1: { input: 1, ouput: 2 }
      |                        ^^^^^
      |
      = help: did you mean `output`?
    ");
    insta::assert_snapshot!(error_for("models:\n  gpt-5.1: { input: 1 }\n"), @"
    `models.gpt-5.1`: missing required key `output`
     --> /tmp/x/project/prices.yml:2:14
      |
    2 |   gpt-5.1: { input: 1 }
      |              ^^^^^
      |
      = help: add `output: …`
    ");
    insta::assert_snapshot!(error_for("models:\n  gpt-5.1:\n    input: cheap\n    output: 2\n"), @"
    `models.gpt-5.1.input`: expected a number, found `cheap`
     --> /tmp/x/project/prices.yml:3:12
      |
    3 |     input: cheap
      |            ^^^^^
    ");
    insta::assert_snapshot!(error_for("models:\n  gpt-5.1: { input: -1, output: 2 }\n"), @"
    `models.gpt-5.1.input`: expected a finite number of 0 or more, found `-1`
     --> /tmp/x/project/prices.yml:2:21
      |
    2 |   gpt-5.1: { input: -1, output: 2 }
      |                     ^^
    ");
    insta::assert_snapshot!(error_for("models:\n  gpt-5.1: 3\n"), @"
    `models.gpt-5.1`: expected a mapping, found `3`
     --> /tmp/x/project/prices.yml:2:12
      |
    2 |   gpt-5.1: 3
      |            ^
      |
      = help: write `key: value` lines
    ");
}

#[test]
fn malformed_entries_are_reported_at_their_location() {
    insta::assert_snapshot!(error_for("models:\n  gpt-5.1: { input: 1, output: }\n"), @"
    `models.gpt-5.1.output`: missing value
     --> /tmp/x/project/prices.yml:2:24
      |
    2 |   gpt-5.1: { input: 1, output: }
      |                        ^^^^^^
      |
      = help: set a value, or remove the key
    ");
    insta::assert_snapshot!(error_for("model:\n  gpt-5.1: { input: 1, output: 2 }\n"), @"
    `model`: unknown key
     --> /tmp/x/project/prices.yml:1:1
      |
    1 | model:
      | ^^^^^
      |
      = help: did you mean `models`?
    ");
    insta::assert_snapshot!(error_for("models:\n  *-mini: { input: 1, output: 2 }\n"), @"
    invalid YAML: alias references unknown anchor
     --> /tmp/x/project/prices.yml:2:3
      |
    2 |   *-mini: { input: 1, output: 2 }
      |   ^
      |
      = help: quote strings that start with `*`
    ");
    insta::assert_snapshot!(error_for("models:\n  a: { input: 1, output: 2 }\n  a: { input: 1, output: 3 }\n"), @"
    `models.a`: duplicate key
     --> /tmp/x/project/prices.yml:3:3
      |
    3 |   a: { input: 1, output: 3 }
      |   ^
      |
      = help: the key is already set on line 2; remove one of the two
    ");
}
