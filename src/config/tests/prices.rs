//! The price list: what is read, and a picture for each mistake in it.

use super::Place;
use crate::config::{ModelPrice, PriceList, load_prices};

fn read(text: &str) -> Result<PriceList, String> {
    let place = Place::new().write("project/prices.yml", text);
    load_prices(&place.path("project/prices.yml")).map_err(|error| place.anonymous(&error))
}

fn complaint(text: &str) -> String {
    read(text).map_or_else(|complaint| complaint, |_| "no mistake was found".to_owned())
}

#[test]
fn prices_are_read_by_model() {
    let list = read(
        "models:\n  \"claude-opus-*\": { input: 15, output: 75, cache_read: 1.5, cache_write: 18.75 }\n  gpt-5.1:\n    input: 1.25\n    output: 10\n",
    );
    let list = list.unwrap();
    let opus = ModelPrice {
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
fn the_documented_list_is_read() {
    let manual = include_str!("../../../docs/config.md");
    let (_, rest) = manual.split_once("`prices.yml`").expect("a chapter on prices");
    let example = rest
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert!(!read(example.expect("an example")).unwrap().is_empty());
}

#[test]
fn wrong_prices_are_shown_where_they_are() {
    insta::assert_snapshot!(complaint("models:\n  gpt-5.1: { input: 1, ouput: 2 }\n"), @"
    `models.gpt-5.1.ouput` is not a known key
     --> /tmp/x/project/prices.yml:2:24
      |
    2 |   gpt-5.1: { input: 1, ouput: 2 }
      |                        ^^^^^
      |
      = help: did you mean `output`?
    ");
    insta::assert_snapshot!(complaint("models:\n  gpt-5.1: { input: 1 }\n"), @"
    `models.gpt-5.1` has no `output`
     --> /tmp/x/project/prices.yml:2:14
      |
    2 |   gpt-5.1: { input: 1 }
      |              ^^^^^
    ");
    insta::assert_snapshot!(complaint("models:\n  gpt-5.1:\n    input: cheap\n    output: 2\n"), @"
    `models.gpt-5.1.input` must be a number, but is `cheap`
     --> /tmp/x/project/prices.yml:3:12
      |
    3 |     input: cheap
      |            ^^^^^
    ");
    insta::assert_snapshot!(complaint("models:\n  gpt-5.1: { input: -1, output: 2 }\n"), @"
    `models.gpt-5.1.input` must be 0 or more and finite, but is `-1`
     --> /tmp/x/project/prices.yml:2:21
      |
    2 |   gpt-5.1: { input: -1, output: 2 }
      |                     ^^
    ");
    insta::assert_snapshot!(complaint("models:\n  gpt-5.1: 3\n"), @"
    `models.gpt-5.1` must be a section of `key: value` lines, but is `3`
     --> /tmp/x/project/prices.yml:2:12
      |
    2 |   gpt-5.1: 3
      |            ^
    ");
}

#[test]
fn mistakes_of_form_are_shown_where_they_are() {
    insta::assert_snapshot!(complaint("models:\n  gpt-5.1: { input: 1, output: }\n"), @"
    `models.gpt-5.1.output` has no value
     --> /tmp/x/project/prices.yml:2:24
      |
    2 |   gpt-5.1: { input: 1, output: }
      |                        ^^^^^^
      |
      = help: give it one, or remove the line
    ");
    insta::assert_snapshot!(complaint("model:\n  gpt-5.1: { input: 1, output: 2 }\n"), @"
    `model` is not a known key
     --> /tmp/x/project/prices.yml:1:1
      |
    1 | model:
      | ^^^^^
      |
      = help: did you mean `models`?
    ");
    insta::assert_snapshot!(complaint("models:\n  *-mini: { input: 1, output: 2 }\n"), @"
    not valid YAML: alias references unknown anchor
     --> /tmp/x/project/prices.yml:2:3
      |
    2 |   *-mini: { input: 1, output: 2 }
      |   ^
      |
      = help: a text that begins with `*` must be put in quotes
    ");
    insta::assert_snapshot!(complaint("models:\n  a: { input: 1, output: 2 }\n  a: { input: 1, output: 3 }\n"), @"
    `models.a` is given twice
     --> /tmp/x/project/prices.yml:3:3
      |
    3 |   a: { input: 1, output: 3 }
      |   ^
      |
      = help: it is already given in line 2; keep one of the two
    ");
}
