//! Byte-pair encoding: which pairs of tokens become one, learnt from a text, most frequent first.
//! Pairs never reach over the start of a word, so it is enough to count in the words that there
//! are.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

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
    let mut seen = Seen::default();
    for (word, times) in counts {
        seen.add(word.iter().map(|byte| u32::from(*byte)).collect(), times);
    }
    let mut joined = Vec::new();
    while joined.len() < count {
        let Some(pair) = seen.most_frequent() else { break };
        seen.join(pair, 256 + joined.len() as u32);
        joined.push(pair);
    }
    joined
}

/// Words with how often they stand in a text, and their pairs. Nothing is counted again when a
/// pair is joined but the words that it stands in.
#[derive(Default)]
struct Seen {
    words: Vec<(Vec<u32>, usize)>,
    /// How often each pair stands in the text.
    times: HashMap<Pair, usize>,
    /// The words that each pair stands in, or stood in once.
    places: HashMap<Pair, Vec<usize>>,
    /// By frequency; of equals the pair of lower numbers comes first. Entries whose frequency is
    /// no longer true are left out when they come up.
    order: BinaryHeap<(usize, Reverse<Pair>)>,
}

impl Seen {
    fn add(&mut self, word: Vec<u32>, times: usize) {
        let place = self.words.len();
        for pair in pairs(&word) {
            *self.times.entry(pair).or_default() += times;
            self.places.entry(pair).or_default().push(place);
        }
        self.words.push((word, times));
    }

    /// The pair that stands there most often, if one stands there twice.
    fn most_frequent(&mut self) -> Option<Pair> {
        if self.order.is_empty() {
            self.order = self.times.iter().map(|(pair, times)| (*times, Reverse(*pair))).collect();
        }
        while let Some((times, Reverse(pair))) = self.order.pop() {
            if self.times.get(&pair) == Some(&times) {
                return (times > 1).then_some(pair);
            }
        }
        None
    }

    /// Makes one token of a pair wherever it stands.
    fn join(&mut self, pair: Pair, token: u32) {
        let mut changed = BTreeSet::new();
        for place in self.places.remove(&pair).unwrap_or_default() {
            let (word, count) = &mut self.words[place];
            if !pairs(word).any(|one| one == pair) {
                continue;
            }
            let before = pairs(word).collect::<Vec<_>>();
            join(word, pair, token);
            for pair in before {
                if let Some(times) = self.times.get_mut(&pair) {
                    *times -= *count;
                }
                changed.insert(pair);
            }
            for pair in pairs(word) {
                *self.times.entry(pair).or_default() += *count;
                if pair.0 == token || pair.1 == token {
                    self.places.entry(pair).or_default().push(place);
                }
                changed.insert(pair);
            }
        }
        self.times.remove(&pair);
        for pair in changed {
            if let Some(times) = self.times.get(&pair) {
                self.order.push((*times, Reverse(pair)));
            }
        }
    }
}

/// The pairs of a word, each as often as it stands there.
fn pairs(word: &[u32]) -> impl Iterator<Item = Pair> {
    word.windows(2).map(|pair| (pair[0], pair[1]))
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
    fn pairs_are_those_that_counting_everything_again_would_choose() {
        let text: Vec<u8> =
            (0..4000u32).map(|at| b" aabbccd"[(at * at / 7 % 8) as usize]).collect();
        let mut counted: Vec<Vec<u32>> =
            words(&text).map(|word| word.iter().map(|byte| u32::from(*byte)).collect()).collect();
        for (at, pair) in learn(&text, 60).into_iter().enumerate() {
            let mut times: HashMap<Pair, usize> = HashMap::new();
            counted.iter().flat_map(|word| pairs(word)).for_each(|pair| {
                *times.entry(pair).or_default() += 1;
            });
            let best = times.into_iter().max_by_key(|(pair, times)| (*times, Reverse(*pair)));
            assert_eq!(best.map(|(pair, _)| pair), Some(pair), "pair {at}");
            counted.iter_mut().for_each(|word| join(word, pair, 256 + at as u32));
        }
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
