//! The memory of messages: all connections together hold a limited number of bytes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{MEMORY_BYTES_MAX, MEMORY_FACTOR};

/// The unit of reservations. It keeps the number of permits small.
const UNIT_BYTES: usize = 4 << 10;

/// The memory of all messages.
#[derive(Clone)]
pub(crate) struct DeliveryMemory(Arc<Semaphore>);

/// The memory of the message that one connection receives. It is released on drop.
#[derive(Default)]
pub(crate) struct MessageMemory(Option<OwnedSemaphorePermit>);

impl DeliveryMemory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MEMORY_BYTES_MAX / UNIT_BYTES)))
    }

    /// Reserves the memory for a message of `bytes` bytes, of which `held` holds a part already.
    /// Returns whether there is enough. It never waits: connections that each hold a part of their
    /// message would wait for each other. Without bytes, it releases what `held` held.
    pub(crate) fn reserve(&self, held: &mut MessageMemory, bytes: usize) -> bool {
        if bytes == 0 {
            *held = MessageMemory::default();
            return true;
        }
        let wanted = bytes.saturating_mul(MEMORY_FACTOR).div_ceil(UNIT_BYTES);
        let held_units = held.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Some(missing) = wanted.checked_sub(held_units).filter(|missing| *missing > 0) else {
            return true;
        };
        let Ok(missing) = u32::try_from(missing) else { return false };
        let Ok(more) = Arc::clone(&self.0).try_acquire_many_owned(missing) else { return false };
        match &mut held.0 {
            Some(permit) => permit.merge(more),
            None => held.0 = Some(more),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_together_have_a_limit_and_release_what_they_held() {
        let memory = DeliveryMemory::new();
        let (mut first, mut second) = (MessageMemory::default(), MessageMemory::default());
        let half = MEMORY_BYTES_MAX / MEMORY_FACTOR / 2;
        assert!(memory.reserve(&mut first, half / 2));
        assert!(memory.reserve(&mut first, half));
        assert!(!memory.reserve(&mut second, half + half / 2));
        assert!(memory.reserve(&mut second, half / 2));
        first = MessageMemory::default();
        assert!(memory.reserve(&mut second, half + half / 2));
        drop(first);
    }
}
