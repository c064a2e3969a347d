//! Byte-pair encoding: which pairs of tokens become one, learnt from a text, most frequent first.
//! Pairs never reach over the start of a word, so it is enough to count in the words that there
//! are.

use std::collections::HashMap;

/// Two neighbouring tokens.
pub(crate) type Pair = (u32, u32);

/// Cuts a text before every space or line end that follows a word, as tokens of words begin with
/// the space before them.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.chunk_by(|before, after| {
        !after.is_ascii_whitespace() || before.is_ascii_whitespace() && before == after
    })
}

/// At most `count` pairs to join, each known by the token that it becomes: the first is 256.
pub(crate) fn learn(text: &[u8], count: usize) -> Vec<Pair> {
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for word in words(text) {
        *counts.entry(word).or_default() += 1;
    }
    let mut words: Vec<(Vec<u32>, usize)> = counts
        .into_iter()
        .map(|(word, count)| (word.iter().map(|byte| u32::from(*byte)).collect(), count))
        .collect();
    // The order of a hash map is nobody's: equal counts must not depend on it.
    words.sort_unstable();
    let mut joined = Vec::new();
    while joined.len() < count {
        let mut pairs: HashMap<Pair, usize> = HashMap::new();
        for (word, times) in &words {
            for pair in word.windows(2) {
                *pairs.entry((pair[0], pair[1])).or_default() += times;
            }
        }
        let best = pairs.into_iter().max_by_key(|(pair, times)| (*times, std::cmp::Reverse(*pair)));
        let Some((pair, times)) = best else { break };
        if times < 2 {
            break;
        }
        let token = 256 + joined.len() as u32;
        for (word, _) in &mut words {
            join(word, pair, token);
        }
        words.retain(|(word, _)| word.len() > 1);
        joined.push(pair);
    }
    joined
}

/// Makes one token of each such pair, from the left.
pub(crate) fn join(word: &mut Vec<u32>, pair: Pair, token: u32) {
    let mut kept = 0;
    let mut at = 0;
    while at < word.len() {
        let is_pair = at + 1 < word.len() && (word[at], word[at + 1]) == pair;
        word[kept] = if is_pair { token } else { word[at] };
        at += 1 + usize::from(is_pair);
        kept += 1;
    }
    word.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_pair_comes_first() {
        let pairs = learn(b"abab abab abac", 3);
        assert_eq!(pairs[0], (u32::from(b'a'), u32::from(b'b')));
        // Now " ab" and "abab" are there twice; of equals the one of lower numbers comes first.
        assert_eq!(pairs[1], (u32::from(b' '), 256));
        assert!(learn(b"abc", 10).is_empty(), "nothing stands there twice");
    }

    #[test]
    fn words_keep_every_byte() {
        let text = b"  fn main() {\n    let x = 1;\n}\n";
        assert_eq!(words(text).collect::<Vec<_>>().concat(), text);
        assert!(words(b"one two").eq([&b"one"[..], b" two"]));
    }

    #[test]
    fn pairs_are_joined_from_the_left() {
        let mut word = vec![1, 1, 1, 2];
        join(&mut word, (1, 1), 9);
        assert_eq!(word, [9, 1, 2]);
    }
}
