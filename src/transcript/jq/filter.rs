//! Compiles a jq filter and applies it to lines, with limits on time, stack and output.

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

/// Loaded before the standard library, which uses its definitions.
const BOUNDS: &str = include_str!("bounds.jq");
/// Loaded after the standard library; replaces some of its definitions.
const PRELUDE: &str = include_str!("prelude.jq");
const MAIN: &str = "ralph_main";
/// Functions that read the clock or the environment or write to the terminal. A filter depends only on its line.
/// `bounds.jq` replaces the last two with no-ops.
const FORBIDDEN: &[&str] = &["now", "env", "debug_empty", "stderr_empty"];

/// The number of steps for an empty line. Each byte of the line adds one step.
const BASE_FUEL: u64 = 10_000;
const MAX_FUEL: u64 = 2_000_000;
/// The maximum number of output bytes for an empty line. Each byte of the line adds four bytes.
const BASE_OUTPUT_BYTES: usize = 64 * 1024;
/// Maximum nesting depth of a line, to protect the stack of the JSON parser.
const MAX_JSON_DEPTH: usize = 256;

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

/// Why a filter produced no output or only a part of it.
#[derive(Debug, PartialEq, Eq)]
pub enum FilterError {
    NotJson(String),
    Failed { printed: String, reason: String },
}

/// A syntax error in a filter or an undefined name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid jq filter at line {line}, column {column}: {problem}")]
pub struct CompileError {
    /// Starts at 1.
    pub line: usize,
    /// Starts at 1, in characters.
    pub column: usize,
    pub problem: String,
}

impl Filter {
    pub fn compile(code: &str) -> Result<Self, CompileError> {
        let error_at = |part: &str, problem: String| CompileError::at(code, part, problem);
        let tokens = Lexer::new(code).lex().map_err(|errors| match errors.first() {
            Some((expected, found)) => error_at(found, format!("expected {}", describe_expected(expected))),
            None => error_at(code, "syntax error".to_owned()),
        })?;
        let body = Parser::new(&tokens)
            .parse(|parser| parser.term())
            .map_err(|errors| match errors.first() {
                Some((expected, found)) => {
                    let part = found.map_or(&code[code.len()..], |token| token.0);
                    error_at(
                        part,
                        format!("expected {}, found {}", expected.as_str(), describe_found(part)),
                    )
                }
                None => error_at(code, "syntax error".to_owned()),
            })?;
        compile_main(body, &error_at)
    }

    /// The output of `jq -j` for this line.
    pub fn apply(&self, line: &str) -> Result<String, FilterError> {
        let not_json = |reason: String| FilterError::NotJson(format!("invalid JSON: {reason}"));
        if is_nested_deeper(line, MAX_JSON_DEPTH) {
            return Err(not_json(format!("nesting exceeds {MAX_JSON_DEPTH} levels")));
        }
        let input =
            jaq_json::read::parse_single(line.as_bytes()).map_err(|error| not_json(error.to_string()))?;
        let length = line.len();
        fuel::fill((BASE_FUEL + length as u64).min(MAX_FUEL));
        let max_output = BASE_OUTPUT_BYTES + 4 * length;
        let mut printed = String::new();
        let ctx = Ctx::<Data>::new(&self.compiled.lut, Vars::new([]));
        for output in self.compiled.id.run((ctx, input)).map(unwrap_valr) {
            // Limits an endless stream of small outputs.
            let step = fuel::burn().map_err(str::to_owned);
            match step.and(output.map_err(|error| error.to_string())) {
                Ok(value) => print::print(&value, &mut printed),
                Err(reason) => return Err(FilterError::Failed { printed, reason }),
            }
            if printed.len() > max_output {
                printed.truncate(printed.floor_char_boundary(max_output));
                let reason = format!("the output for one line exceeds {max_output} bytes");
                return Err(FilterError::Failed { printed, reason });
            }
        }
        Ok(printed)
    }
}

impl CompileError {
    fn at(code: &str, part: &str, problem: String) -> Self {
        // `part` is a slice of `code`, unless it belongs to the prelude, which always compiles.
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
    error_at: &dyn Fn(&str, String) -> CompileError,
) -> Result<Filter, CompileError> {
    let parse_defs = |text| {
        load::parse(text, |parser| parser.defs())
            .unwrap_or_default()
            .into_iter()
    };
    let library = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let all = parse_defs(BOUNDS).chain(library).chain(parse_defs(PRELUDE));
    let mut definitions: Vec<Def<&str>> = Vec::new();
    // A loop instead of `collect`, so that the definitions get the lifetime of the filter's text.
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
    let modules = modules.map_err(|_| error_at("", "cannot load the filter".to_owned()))?;
    let compiled = Compiler::default().with_funs(natives()).compile(modules);
    let compiled = compiled.map_err(|errors| {
        let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
        match first {
            Some((name, compile::Undefined::Filter(arity))) => {
                error_at(name, format!("undefined filter `{name}/{arity}`"))
            }
            Some((name, other)) => error_at(name, format!("undefined {} `{name}`", other.as_str())),
            None => error_at("", "cannot compile the filter".to_owned()),
        }
    })?;
    Ok(Filter {
        compiled: Arc::new(compiled),
    })
}

/// The native functions without the forbidden ones, and with `ralph_tick`.
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

fn describe_expected(expected: &load::lex::Expect<&str>) -> String {
    use load::lex::Expect;
    match expected {
        // `as_str` panics for unknown brackets.
        Expect::Delim(open) => format!("closing delimiter for `{open}`"),
        other => other.as_str().to_owned(),
    }
}

fn describe_found(part: &str) -> String {
    match part.chars().next() {
        None => "end of filter".to_owned(),
        Some(_) => format!("`{}`", part.chars().take(20).collect::<String>()),
    }
}

/// True if brackets outside of strings are nested deeper than `limit`.
fn is_nested_deeper(line: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
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
    fn endless_loop_is_stopped() {
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
    fn deep_recursion_is_stopped() {
        for filter in ["def f: 1 + f; f", "def f: [f]; f", "def f: (f | f); f"] {
            let reason = reason(filter);
            assert!(
                reason.contains("deeply") || reason.contains("steps"),
                "{filter}: {reason}"
            );
        }
    }

    #[test]
    fn endless_output_is_truncated() {
        let Err(FilterError::Failed { printed, .. }) = apply("repeat(\"xxxxxxxxxxxxxxxxxxxx\")", "null")
        else {
            panic!("the filter did not fail");
        };
        assert!(
            !printed.is_empty() && printed.len() <= BASE_OUTPUT_BYTES + 16,
            "{}",
            printed.len()
        );
    }

    #[test]
    fn fuel_suffices_for_a_large_line() {
        let items: Vec<String> = (0..20_000).map(|n| format!(r#"{{"n":{n},"t":"x"}}"#)).collect();
        let line = format!("[{}]", items.join(","));
        let printed = apply("[.[] | select(.n % 2 == 0) | .t] | join(\"\") | length", &line);
        assert_eq!(printed.as_deref(), Ok("10000"));
    }

    #[test]
    fn compile_error_has_line_and_column() {
        let error = |code: &str| Filter::compile(code).unwrap_err().to_string();
        insta::assert_snapshot!([
            error(".a |"),
            error("select(.a"),
            error(".a\n| nosuch(1)"),
            error("$x"),
            error(""),
            error("import \"a\" as a; ."),
            error("\"\\q\""),
            error("input"),
        ].join("\n"), @r#"
        invalid jq filter at line 1, column 5: expected term, found end of filter
        invalid jq filter at line 1, column 10: expected closing delimiter for `(`
        invalid jq filter at line 2, column 3: undefined filter `nosuch/1`
        invalid jq filter at line 1, column 1: undefined variable `$x`
        invalid jq filter at line 1, column 1: expected term, found end of filter
        invalid jq filter at line 1, column 8: expected nothing, found `"a"`
        invalid jq filter at line 1, column 3: expected string escape sequence
        invalid jq filter at line 1, column 1: undefined filter `input/0`
        "#);
    }

    #[test]
    fn deeply_nested_json_is_rejected() {
        let deep = "[".repeat(100_000);
        assert!(matches!(apply(".", &deep), Err(FilterError::NotJson(_))));
        assert!(!is_nested_deeper(r#"{"a":"[[[[\"[[[["}"#, 1));
    }

    #[test]
    fn results_equal_those_of_jq() {
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
