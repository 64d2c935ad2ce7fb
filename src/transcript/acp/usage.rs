//! Tokens and cost of an ACP session. What the figures cover differs between agents: see `UsageMeaning`.

use serde_json::value::RawValue;

use super::wire::{AcpDetail, AcpResult, AcpTokens};
use crate::event::{CostSource, TranscriptEvent, Usage, UsageMeaning, UsageScope};
use crate::transcript::common::object;

#[derive(Debug)]
pub(super) struct UsageReader {
    meaning: UsageMeaning,
}

impl UsageReader {
    pub(super) fn new(meaning: UsageMeaning) -> Self {
        Self { meaning }
    }

    /// The usage of one request, which some agents add to an empty chunk.
    pub(super) fn of_chunk(&self, meta: Option<&RawValue>) -> Option<TranscriptEvent> {
        if self.meaning != UsageMeaning::Requests {
            return None;
        }
        let tokens = tokens(object::<AcpDetail<'_>>(meta).usage)?;
        Some(TranscriptEvent::usage(tokens))
    }

    /// The cost of the session so far.
    pub(super) fn of_cost(cost: Option<&RawValue>) -> Option<TranscriptEvent> {
        let cost: AcpDetail<'_> = object(cost);
        if !cost.currency.is("USD") || cost.amount.real()? <= 0.0 {
            return None;
        }
        let cost_usd = cost.amount.money();
        Some(TranscriptEvent::usage(Usage {
            cost_usd,
            cost_source: cost_usd.map(|_| CostSource::Reported),
            scope: UsageScope::Session,
            ..Usage::default()
        }))
    }

    /// The usage in the answer to a prompt.
    pub(super) fn of_result(&self, result: &AcpResult<'_>) -> Option<TranscriptEvent> {
        let meta: AcpDetail<'_> = object(result.meta);
        let quota: AcpDetail<'_> = object(meta.quota);
        let reported = tokens(result.usage).or_else(|| tokens(quota.token_count))?;
        match self.meaning {
            UsageMeaning::Prompt => Some(TranscriptEvent::usage(Usage {
                scope: UsageScope::Iteration,
                ..reported
            })),
            UsageMeaning::Requests | UsageMeaning::LastRequest | UsageMeaning::None => None,
        }
    }
}

/// Reads tokens. The input excludes the cache with some agents; the total shows which.
fn tokens(raw: Option<&RawValue>) -> Option<Usage> {
    let tokens: AcpTokens<'_> = object(raw);
    let (input, output) = (tokens.input_tokens.count()?, tokens.output_tokens.count()?);
    let cached = tokens.cached_read_tokens.count();
    let written = tokens.cached_write_tokens.count();
    let cache = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let excludes_cache =
        tokens.total_tokens.count() >= Some(input.saturating_add(output).saturating_add(cache));
    Some(Usage {
        prompt_tokens: Some(if excludes_cache {
            input.saturating_add(cache)
        } else {
            input
        }),
        completion_tokens: Some(output),
        cached_tokens: cached,
        cache_write_tokens: written,
        reasoning_tokens: tokens.thought_tokens.count(),
        ..Usage::default()
    })
}
