//! A fast hasher for small keys: states are hashed tens of millions of times, and no attacker chooses them to
//! collide.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`FastHasher`].
pub(crate) type BuildFastHasher = BuildHasherDefault<FastHasher>;

/// Multiplies and rotates, as rustc's own does, and mixes at the end.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }

    fn write_isize(&mut self, value: isize) {
        self.add(value as u64);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    }
}
