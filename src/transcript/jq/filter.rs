//! A jq filter, compiled once and applied to one line after the other, within bounds.

use std::fmt;
use std::sync::Arc;

use jaq_core::load::lex::Lexer;
use jaq_core::load::parse::{Def, Parser, Term};
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Compiler, Ctx, Error, Native, Vars, compile, data, unwrap_valr};
use jaq_json::Val;

use super::fuel::{self, TICK};
use super::print;

type Data = data::JustLut<Val>;

/// Comes before the library, which is built on it.
const BOUNDS: &str = include_str!("bounds.jq");
/// Comes after the library, some of which it replaces.
const PRELUDE: &str = include_str!("prelude.jq");
const MAIN: &str = "ralph_main";
/// What a filter may not do here: read the clock or the environment (it reads one line, and nothing else), or write to
/// the terminal. The last two are defined again, as nothing, in the prelude.
const FORBIDDEN: &[&str] = &["now", "env", "debug_empty", "stderr_empty"];

/// Steps for a line of no length; a longer one gets more, since honest work grows with its input.
const FUEL: u64 = 10_000;
const MOST_FUEL: u64 = 2_000_000;
/// Bytes that may be printed for a line of no length.
const ROOM: usize = 64 * 1024;
/// No agent nests its events so deep; the reader of JSON would run out of stack.
const DEEPEST_JSON: usize = 256;

/// A compiled filter.
#[derive(Clone)]
pub struct Filter {
    compiled: Arc<compile::Filter<Native<Data>>>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filter")
    }
}

/// Why a filter printed nothing, or not all.
#[derive(Debug, PartialEq, Eq)]
pub enum FilterError {
    NotJson(String),
    Failed { printed: String, reason: String },
}

/// Where and why a filter is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the jq filter is wrong at line {line}, column {column}: {problem}")]
pub struct CompileError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub problem: String,
}

impl Filter {
    pub fn compile(code: &str) -> Result<Self, CompileError> {
        let wrong = |part: &str, problem: String| CompileError::at(code, part, problem);
        let tokens = Lexer::new(code).lex().map_err(|errors| match errors.first() {
            Some((expected, found)) => wrong(found, format!("expected {}", lex_words(expected))),
            None => wrong(code, "it cannot be read".to_owned()),
        })?;
        let body = Parser::new(&tokens)
            .parse(|parser| parser.term())
            .map_err(|errors| match errors.first() {
                Some((expected, found)) => {
                    let part = found.map_or(&code[code.len()..], |token| token.0);
                    wrong(
                        part,
                        format!("expected {}, found {}", expected.as_str(), found_words(part)),
                    )
                }
                None => wrong(code, "it cannot be read".to_owned()),
            })?;
        compile_main(body, &wrong)
    }

    /// What `jq -j` would print for this line.
    pub fn apply(&self, line: &str) -> Result<String, FilterError> {
        let not_json = |reason: String| FilterError::NotJson(format!("not readable as JSON: {reason}"));
        if is_nested_deeper(line, DEEPEST_JSON) {
            return Err(not_json(format!("nested more than {DEEPEST_JSON} deep")));
        }
        let input =
            jaq_json::read::parse_single(line.as_bytes()).map_err(|error| not_json(error.to_string()))?;
        let length = line.len();
        fuel::fill((FUEL + length as u64).min(MOST_FUEL));
        let room = ROOM + 4 * length;
        let mut printed = String::new();
        let ctx = Ctx::<Data>::new(&self.compiled.lut, Vars::new([]));
        for output in self.compiled.id.run((ctx, input)).map(unwrap_valr) {
            // An endless stream of nothing much must end as well.
            let step = fuel::burn().map_err(str::to_owned);
            match step.and(output.map_err(|error| error.to_string())) {
                Ok(value) => print::print(&value, &mut printed),
                Err(reason) => return Err(FilterError::Failed { printed, reason }),
            }
            if printed.len() > room {
                printed.truncate(printed.floor_char_boundary(room));
                let reason = format!("it printed more than {room} bytes for one line");
                return Err(FilterError::Failed { printed, reason });
            }
        }
        Ok(printed)
    }
}

impl CompileError {
    fn at(code: &str, part: &str, problem: String) -> Self {
        // The part is a piece of the code, except where it belongs to the prelude, which compiles.
        let start = (part.as_ptr().addr()).wrapping_sub(code.as_ptr().addr());
        let before = code.get(..start).unwrap_or(code);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem,
        }
    }
}

fn compile_main(
    body: Term<&str>,
    wrong: &dyn Fn(&str, String) -> CompileError,
) -> Result<Filter, CompileError> {
    let own = |text| {
        load::parse(text, |parser| parser.defs())
            .unwrap_or_default()
            .into_iter()
    };
    let library = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let all = own(BOUNDS).chain(library).chain(own(PRELUDE));
    let mut definitions: Vec<Def<&str>> = Vec::new();
    // One by one: each then lives only as long as the filter's own text.
    for definition in all {
        definitions.push(definition);
    }
    definitions.push(Def {
        name: MAIN,
        args: Vec::new(),
        body,
    });
    let arena = Arena::default();
    let file = File { code: MAIN, path: () };
    let modules = Loader::new(definitions.into_iter().map(fuel::meter)).load(&arena, file);
    let modules = modules.map_err(|_| wrong("", "it cannot be loaded".to_owned()))?;
    let compiled = Compiler::default().with_funs(natives()).compile(modules);
    let compiled = compiled.map_err(|errors| {
        let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
        match first {
            Some((name, compile::Undefined::Filter(arity))) => {
                wrong(name, format!("there is no filter `{name}/{arity}`"))
            }
            Some((name, other)) => wrong(name, format!("there is no {} `{name}`", other.as_str())),
            None => wrong("", "it cannot be compiled".to_owned()),
        }
    })?;
    Ok(Filter {
        compiled: Arc::new(compiled),
    })
}

/// What the language knows by nature, without what would reach outside, and with the tick.
fn natives() -> impl Iterator<Item = Fun<Data>> {
    let tick: Fun<Data> = run((TICK, v(0), |cv| {
        bome(fuel::burn().map(|()| cv.1).map_err(Error::str))
    }));
    let library = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    library
        .filter(|(name, _, _)| !FORBIDDEN.contains(name))
        .map(|(name, arguments, native)| {
            let name = if name == "range" { "ralph_range" } else { name };
            (name, arguments, native)
        })
        .chain([tick])
}

fn lex_words(expected: &load::lex::Expect<&str>) -> String {
    use load::lex::Expect;
    match expected {
        // Its own words panic for a bracket that they do not know.
        Expect::Delim(open) => format!("the end of what `{open}` begins"),
        other => other.as_str().to_owned(),
    }
}

fn found_words(part: &str) -> String {
    match part.chars().next() {
        None => "the end".to_owned(),
        Some(_) => format!("`{}`", part.chars().take(20).collect::<String>()),
    }
}

/// Brackets outside of texts, counted.
fn is_nested_deeper(line: &str, limit: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(filter: &str, line: &str) -> Result<String, FilterError> {
        Filter::compile(filter)
            .unwrap_or_else(|error| panic!("{filter}: {error}"))
            .apply(line)
    }

    fn reason(filter: &str) -> String {
        match apply(filter, "null") {
            Err(FilterError::Failed { reason, .. }) => reason,
            other => panic!("{filter}: {other:?}"),
        }
    }

    #[test]
    fn a_filter_that_loops_for_ever_is_stopped() {
        for filter in [
            "def f: f; f",
            "def f: def g: g; g; f",
            "last(repeat(1))",
            "until(false; .)",
            "[.[]?, recurse(.)]",
            "range(0; infinite) | empty",
            "reduce range(0; 1000000000) as $i (0; . + $i)",
            "first(range(0; 1000000000) | select(. < 0))",
            "[limit(1000000000; repeat(1))] | length",
            "last(while(true; .))",
            r#""\(def f: f; f)""#,
            ".[def f: f; f]?",
        ] {
            assert!(reason(filter).contains("steps"), "{filter}: {}", reason(filter));
        }
    }

    #[test]
    fn a_filter_that_calls_itself_too_deeply_is_stopped() {
        for filter in ["def f: 1 + f; f", "def f: [f]; f", "def f: (f | f); f"] {
            let reason = reason(filter);
            assert!(
                reason.contains("deeply") || reason.contains("steps"),
                "{filter}: {reason}"
            );
        }
    }

    #[test]
    fn a_filter_that_prints_for_ever_is_cut() {
        let Err(FilterError::Failed { printed, .. }) = apply("repeat(\"xxxxxxxxxxxxxxxxxxxx\")", "null")
        else {
            panic!("it ended");
        };
        assert!(
            !printed.is_empty() && printed.len() <= ROOM + 16,
            "{}",
            printed.len()
        );
    }

    #[test]
    fn honest_work_on_a_large_line_has_fuel_enough() {
        let items: Vec<String> = (0..20_000).map(|n| format!(r#"{{"n":{n},"t":"x"}}"#)).collect();
        let line = format!("[{}]", items.join(","));
        let printed = apply("[.[] | select(.n % 2 == 0) | .t] | join(\"\") | length", &line);
        assert_eq!(printed.as_deref(), Ok("10000"));
    }

    #[test]
    fn a_filter_that_does_not_compile_is_told_with_its_place() {
        let told = |code: &str| Filter::compile(code).unwrap_err().to_string();
        insta::assert_snapshot!([
            told(".a |"),
            told("select(.a"),
            told(".a\n| nosuch(1)"),
            told("$x"),
            told(""),
            told("import \"a\" as a; ."),
            told("\"\\q\""),
            told("input"),
        ].join("\n"), @r#"
        the jq filter is wrong at line 1, column 5: expected term, found the end
        the jq filter is wrong at line 1, column 10: expected the end of what `(` begins
        the jq filter is wrong at line 2, column 3: there is no filter `nosuch/1`
        the jq filter is wrong at line 1, column 1: there is no variable `$x`
        the jq filter is wrong at line 1, column 1: expected term, found the end
        the jq filter is wrong at line 1, column 8: expected nothing, found `"a"`
        the jq filter is wrong at line 1, column 3: expected string escape sequence
        the jq filter is wrong at line 1, column 1: there is no filter `input/0`
        "#);
    }

    #[test]
    fn deep_json_is_refused_before_it_is_read() {
        let deep = "[".repeat(100_000);
        assert!(matches!(apply(".", &deep), Err(FilterError::NotJson(_))));
        assert!(!is_nested_deeper(r#"{"a":"[[[[\"[[[["}"#, 1));
    }

    #[test]
    fn what_jq_means_is_meant_here() {
        for (filter, line, printed) in [
            (r#"join("-")"#, r#"["a",null,1,true]"#, "a--1-true"),
            (r#"join("\n")"#, "[]", ""),
            ("with_entries(.value += 1) | .a", r#"{"a":1}"#, "2"),
            ("from_entries | .x", r#"[{"name":"x","value":3}]"#, "3"),
            (".a // empty", r#"{"a":null}"#, ""),
            ("[range(3)] | length", "null", "3"),
            ("if .a then 1 else 2 end", "{}", "2"),
            (".a? // \"none\"", "[1]", "none"),
            ("@csv", r#"["a\"b",1,null]"#, "\"a\"\"b\",1,"),
            ("@tsv", r#"["a\tb",1]"#, "a\\tb\t1"),
            ("del(.a) | tojson", r#"{"a":1,"b":2}"#, "{\"b\":2}"),
            (r#"test("^a.c$")"#, "\"abc\"", "true"),
            ("IN(1, 2)", "2", "true"),
            ("limit(2; .[])", "[1,2,3]", "12"),
            (r#"gsub("\\s+"; " ")"#, "\"a \\t b\"", "a b"),
            ("debug, stderr | empty", "1", ""),
            (r#""\(.a)!""#, r#"{"a":{"b":[1]}}"#, "{\"b\":[1]}!"),
            ("[paths] | length", r#"{"a":{"b":[1]}}"#, "3"),
        ] {
            assert_eq!(apply(filter, line).as_deref(), Ok(printed), "{filter}");
        }
    }
}
