//! Ranking of context blocks by the words of a query.

use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::clip_to;
use crate::model::{BlockType, ContextId};
use crate::store::context::Block;

/// Saturation of repeated words: each further mention counts less.
const SATURATION: f64 = 1.2;
/// Weight of a tag compared with a mention.
const TAG_WEIGHT: f64 = 3.0;
/// Maximum characters of an excerpt.
const MAX_EXCERPT_CHARS: usize = 200;

/// A matching block.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Hit {
    pub context_id: ContextId,
    /// Kind of content.
    pub block_type: BlockType,
    /// Labels of the block.
    pub tags: Vec<String>,
    /// Relevance, only for comparison with other matches.
    pub score: f64,
    /// Text around the first match.
    pub excerpt: String,
}

struct Candidate {
    hit: Hit,
    /// Weight of each query word in the block.
    weights: Vec<f64>,
}

/// Blocks that contain a word of the query, best first. `visit_all` passes them one after the other, so that
/// only one is in memory.
pub(crate) fn search<E>(
    query: &str,
    visit_all: impl FnOnce(&mut dyn FnMut(&Block)) -> Result<(), E>,
) -> Result<Vec<Hit>, E> {
    let terms = words(query);
    let mut seen = 0_usize;
    let mut candidates = Vec::new();
    visit_all(&mut |block| {
        seen += 1;
        candidates.extend(candidate(block, &terms));
    })?;
    let mut hits: Vec<Hit> = rank(candidates, seen, terms.len());
    hits.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| one.context_id.cmp(&other.context_id))
    });
    Ok(hits)
}

/// Weighs rare words more than common ones.
fn rank(candidates: Vec<Candidate>, seen: usize, terms: usize) -> Vec<Hit> {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let rarity: Vec<f64> = (0..terms)
        .map(|term| {
            let holds =
                |candidate: &&Candidate| candidate.weights.get(term).is_some_and(|weight| *weight > 0.0);
            let with = candidates.iter().filter(holds).count();
            (1.0 + number(seen) / number(with.max(1))).ln()
        })
        .collect();
    candidates
        .into_iter()
        .map(|Candidate { hit, weights }| {
            let score: f64 = weights
                .iter()
                .zip(&rarity)
                .map(|(weight, rarity)| weight * rarity)
                .sum();
            Hit {
                score: (score * 1000.0).round() / 1000.0,
                ..hit
            }
        })
        .collect()
}

fn candidate(block: &Block, terms: &[String]) -> Option<Candidate> {
    let text = block.content.to_lowercase();
    let weights: Vec<f64> = terms
        .iter()
        .map(|term| {
            let mentions = f64::from(u32::try_from(text.matches(term.as_str()).count()).unwrap_or(u32::MAX));
            let tagged = block.tags.iter().any(|tag| tag.contains(term.as_str()));
            mentions * (SATURATION + 1.0) / (mentions + SATURATION) + if tagged { TAG_WEIGHT } else { 0.0 }
        })
        .collect();
    if weights.iter().all(|weight| *weight == 0.0) {
        return None;
    }
    Some(Candidate {
        hit: Hit {
            context_id: block.context_id.clone(),
            block_type: block.block_type,
            tags: block.tags.clone(),
            score: 0.0,
            excerpt: excerpt(&block.content, terms),
        },
        weights,
    })
}

/// Text around the first line with a query word, or the start.
fn excerpt(content: &str, terms: &[String]) -> String {
    let mentions = |line: &&str| {
        let line = line.to_lowercase();
        terms.iter().any(|term| line.contains(term.as_str()))
    };
    let line = content.lines().find(mentions);
    let line = line.or_else(|| content.lines().find(|line| !line.trim().is_empty()));
    clip_to(line.unwrap_or_default().trim(), MAX_EXCERPT_CHARS)
}

/// Words of a text in lower case, each once.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.sort();
    words.dedup();
    words
}
