//! Unsigned numbers of variable length (LEB128), each in its shortest form.

/// Appends a number.
pub(crate) fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

/// Reads a number and moves `bytes` past it. `None` if it is cut off, too large, or longer than it
/// has to be.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let group = u64::from(byte & 0x7f);
        if group << shift >> shift != group {
            return None;
        }
        number |= group << shift;
        if byte & 0x80 == 0 {
            let is_shortest = *byte != 0 || shift == 0;
            return is_shortest.then_some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_form() {
        for number in [0, 1, 127, 128, 300, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            write(&mut bytes, number);
            assert_eq!(read(&mut bytes.as_slice()), Some(number));
            assert_eq!(read(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read(&mut &[0x80, 0x00][..]), None);
        assert_eq!(read(&mut &[0xff; 11][..]), None);
        assert_eq!(read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
    }
}
