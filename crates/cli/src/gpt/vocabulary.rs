//! Tokens: bytes, or bytes and the pairs that a text taught (`pairs.rs`). Whatever the text, it can
//! be written in them, and reads back as it was.

use std::collections::HashMap;

use plimsoll_data::TokenWidth;

use super::pairs::{self, Pair, join};

/// The tokens of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vocabulary {
    /// What tokens above 255 are made of, in order.
    pairs: Vec<Pair>,
    /// The bytes of each token.
    bytes: Vec<Vec<u8>>,
}

/// A text in tokens, as a dataset takes them: no wider than they must be.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) bytes: Vec<u8>,
    pub(crate) width: TokenWidth,
}

impl Tokens {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.width.bytes()
    }
}

impl Vocabulary {
    /// Of `size` tokens, or fewer if the text has no more pairs; with 256, of bytes alone.
    pub(crate) fn learn(text: &[u8], size: usize) -> Vocabulary {
        Vocabulary::from_pairs(pairs::learn(text, size.saturating_sub(256)))
    }

    /// Of bytes, and these pairs.
    pub(crate) fn from_pairs(pairs: Vec<Pair>) -> Vocabulary {
        let mut bytes: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        for &(left, right) in &pairs {
            let joined = [bytes[left as usize].as_slice(), &bytes[right as usize]].concat();
            bytes.push(joined);
        }
        Vocabulary { pairs, bytes }
    }

    /// How many tokens there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// A text in tokens.
    pub(crate) fn encode(&self, text: &[u8]) -> Vec<i64> {
        let mut tokens = Vec::new();
        self.each_token(text, |token| tokens.push(i64::from(token)));
        tokens
    }

    /// A text in tokens, for a dataset. There are at most 65,536 tokens, so two bytes hold each.
    pub(crate) fn encode_small(&self, text: &[u8]) -> Tokens {
        if self.pairs.is_empty() {
            return Tokens { bytes: text.to_vec(), width: TokenWidth::U8 };
        }
        let mut bytes = Vec::new();
        self.each_token(text, |token| bytes.extend((token as u16).to_ne_bytes()));
        Tokens { bytes, width: TokenWidth::U16 }
    }

    fn each_token(&self, text: &[u8], mut put: impl FnMut(u32)) {
        if self.pairs.is_empty() {
            return text.iter().for_each(|byte| put(u32::from(*byte)));
        }
        let ranks: HashMap<Pair, u32> =
            self.pairs.iter().enumerate().map(|(at, pair)| (*pair, 256 + at as u32)).collect();
        let mut known: HashMap<&[u8], Vec<u32>> = HashMap::new();
        for word in pairs::words(text) {
            let word = known.entry(word).or_insert_with(|| encode_word(word, &ranks));
            word.iter().for_each(|token| put(*token));
        }
    }

    /// Tokens as bytes; tokens that there are not stand for nothing.
    pub(crate) fn decode(&self, tokens: &[i64]) -> Vec<u8> {
        let bytes = |token: &i64| usize::try_from(*token).ok().and_then(|at| self.bytes.get(at));
        tokens.iter().filter_map(bytes).flatten().copied().collect()
    }
}

/// Joins pairs in the order in which they were learnt.
fn encode_word(word: &[u8], ranks: &HashMap<Pair, u32>) -> Vec<u32> {
    let mut tokens: Vec<u32> = word.iter().map(|byte| u32::from(*byte)).collect();
    loop {
        let found = tokens
            .windows(2)
            .filter_map(|pair| ranks.get(&(pair[0], pair[1])).map(|token| (*token, pair)))
            .min_by_key(|(token, _)| *token);
        let Some((token, pair)) = found else { return tokens };
        let pair = (pair[0], pair[1]);
        join(&mut tokens, pair, token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpt::text::Text;

    #[test]
    fn every_text_reads_back_as_it_was() {
        let text = Text::read(None).unwrap();
        let vocabulary = Vocabulary::learn(&text.bytes[..100_000], 512);
        assert_eq!(vocabulary.len(), 512);
        let tokens = vocabulary.encode(&text.bytes[100_000..150_000]);
        assert!(tokens.len() < 35_000, "{} tokens for 50,000 bytes", tokens.len());
        assert_eq!(vocabulary.decode(&tokens), &text.bytes[100_000..150_000]);
        let small = vocabulary.encode_small(&text.bytes[100_000..150_000]);
        assert_eq!((small.len(), small.width), (tokens.len(), TokenWidth::U16));
        let wide = small.bytes.as_chunks().0.iter();
        assert!(wide.map(|token| i64::from(u16::from_ne_bytes(*token))).eq(tokens));
        let any: Vec<u8> = (0..=255).rev().collect();
        assert_eq!(vocabulary.decode(&vocabulary.encode(&any)), any);
    }

    #[test]
    fn of_bytes_alone_a_token_is_a_byte() {
        let vocabulary = Vocabulary::learn(b"aaaa aaaa", 256);
        assert_eq!(vocabulary.encode(b"a!"), [97, 33]);
        assert_eq!(vocabulary.encode_small(b"a!").bytes, b"a!");
        assert_eq!(vocabulary.len(), 256);
        assert_eq!(vocabulary.decode(&[97, -1, 1000]), b"a");
    }
}
