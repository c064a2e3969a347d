//! Base64 with padding, for the columns inside the page. Only writing: the page reads it with the
//! browser's own `atob`.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends `bytes` to `text`.
pub(crate) fn encode_into(bytes: &[u8], text: &mut String) {
    text.reserve(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let number = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            match place <= group.len() {
                true => {
                    let letter = LETTERS[(number >> (18 - 6 * place) & 63) as usize];
                    text.push(char::from(letter));
                }
                false => text.push('='),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_examples_of_rfc_4648() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut text = String::new();
            super::encode_into(plain.as_bytes(), &mut text);
            assert_eq!(text, coded);
        }
    }
}
