//! Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011):
//! a block cipher over counters. Word j of counter c is a pure function of (seed, c, j).

/// Counters computed side by side: a vector of 32-bit words on every level.
const WIDE: usize = 16;

const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

/// Fills `out` (a multiple of 4 long) with the words of the counters from `first` on.
#[inline(always)]
pub(super) fn words(seed: u64, first: u64, out: &mut [u32]) {
    let mut counter = first;
    for chunk in out.chunks_mut(4 * WIDE) {
        let block = block(seed, counter);
        for (c, four) in chunk.chunks_exact_mut(4).enumerate() {
            for (lane, word) in four.iter_mut().enumerate() {
                *word = block[lane][c];
            }
        }
        counter = counter.wrapping_add(WIDE as u64);
    }
}

/// The four words of `WIDE` counters, word by word.
#[inline(always)]
fn block(seed: u64, first: u64) -> [[u32; WIDE]; 4] {
    let mut state = [[0u32; WIDE]; 4];
    let [low, high, ..] = &mut state;
    for (c, (low, high)) in low.iter_mut().zip(high).enumerate() {
        let counter = first.wrapping_add(c as u64);
        *low = counter as u32;
        *high = (counter >> 32) as u32;
    }
    let mut key = [seed as u32, (seed >> 32) as u32];
    for _ in 0..ROUNDS {
        let mut next = [[0u32; WIDE]; 4];
        for c in 0..WIDE {
            let a = MULTIPLIERS[0] * u64::from(state[0][c]);
            let b = MULTIPLIERS[1] * u64::from(state[2][c]);
            next[0][c] = (b >> 32) as u32 ^ state[1][c] ^ key[0];
            next[1][c] = b as u32;
            next[2][c] = (a >> 32) as u32 ^ state[3][c] ^ key[1];
            next[3][c] = a as u32;
        }
        state = next;
        key = [key[0].wrapping_add(KEY_STEPS[0]), key[1].wrapping_add(KEY_STEPS[1])];
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // From the paper's reference implementation: counter 0 and key 0.
        let mut out = [0; 4];
        words(0, 0, &mut out);
        assert_eq!(out, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }

    #[test]
    fn words_do_not_depend_on_where_a_run_starts() {
        let mut long = [0; 400];
        words(42, u64::MAX - 20, &mut long);
        for start in [1, 7, 16, 33] {
            let mut short = [0; 40];
            words(42, (u64::MAX - 20).wrapping_add(start as u64), &mut short);
            assert_eq!(short[..], long[4 * start..4 * start + 40]);
        }
    }
}
