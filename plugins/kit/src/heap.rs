//! Allocator of the built-in components: an arena in front of the allocator of the standard library.
//!
//! An instance serves one call, and its memory is then discarded. Most calls allocate less than the arena holds. For
//! them, placing each block behind the last one is quicker than keeping lists of freed blocks.
//!
//! The results of imports lie in the arena too. The C library frees one of them itself: the environment, which is empty
//! in the sandbox, so that there is no block to free.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::ptr;

/// Size of the arena in bytes.
const ARENA_BYTES: usize = 256 << 10;

/// Allocator with an arena. Blocks that do not fit into the rest of the arena come from the standard library's allocator.
pub(crate) struct Heap {
    arena: UnsafeCell<[u8; ARENA_BYTES]>,
    /// Offset in the arena behind the last block in use.
    used: Cell<usize>,
}

// SAFETY: a component has only one thread.
#[cfg(target_family = "wasm")]
unsafe impl Sync for Heap {}

impl Heap {
    /// Creates an allocator with an empty arena.
    pub(crate) const fn new() -> Heap {
        Heap {
            arena: UnsafeCell::new([0; ARENA_BYTES]),
            used: Cell::new(0),
        }
    }

    fn start(&self) -> *mut u8 {
        self.arena.get().cast()
    }

    /// Offset of a block in the arena. `None` for any other block.
    fn offset(&self, block: *mut u8) -> Option<usize> {
        let offset = block.addr().wrapping_sub(self.start().addr());
        (offset < ARENA_BYTES).then_some(offset)
    }

    /// True if nothing is behind a block in the arena.
    fn is_last(&self, offset: usize, layout: Layout) -> bool {
        offset + layout.size() == self.used.get()
    }
}

// SAFETY: a block in the arena begins behind all blocks in use and ends in the arena, so blocks never overlap. All other
// blocks come from the standard library's allocator and return to it.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.start();
        let begin = (start.addr() + self.used.get()).next_multiple_of(layout.align()) - start.addr();
        match begin.checked_add(layout.size()) {
            Some(end) if end <= ARENA_BYTES => {
                self.used.set(end);
                // SAFETY: the block is in the arena.
                unsafe { start.add(begin) }
            }
            // SAFETY: the caller guarantees a size above zero.
            _ => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.offset(block) {
            Some(offset) if self.is_last(offset, layout) => self.used.set(offset),
            Some(_) => {}
            // SAFETY: the block is not in the arena.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = self.offset(block) else {
            // SAFETY: the block is not in the arena.
            return unsafe { System.realloc(block, layout, size) };
        };
        if self.is_last(offset, layout) && size <= ARENA_BYTES - offset {
            self.used.set(offset + size);
            return block;
        }
        if size <= layout.size() {
            return block;
        }
        // SAFETY: the caller guarantees a size that is above zero and valid for the alignment.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both blocks hold at least the old size and do not overlap.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size()) };
            // The last block had no room to grow, so its new place is not in the arena.
            if self.is_last(offset, layout) {
                self.used.set(offset);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    /// Content of a block.
    unsafe fn content<'a>(block: *mut u8, size: usize) -> &'a mut [u8] {
        // SAFETY: the caller owns the block.
        unsafe { std::slice::from_raw_parts_mut(block, size) }
    }

    #[test]
    fn blocks_are_aligned_and_keep_their_content() {
        let heap = Box::new(Heap::new());
        let mut blocks = Vec::new();
        for (turn, byte) in (0..500_usize).zip((0..=u8::MAX).cycle()) {
            let layout = layout(1 + turn * 37 % 1900, 1 << (turn % 7));
            // SAFETY: each block is used within its layout.
            unsafe {
                let block = heap.alloc(layout);
                assert_eq!(block.addr() % layout.align(), 0);
                content(block, layout.size()).fill(byte);
                blocks.push((block, layout, byte));
            }
        }
        assert!(heap.offset(blocks[0].0).is_some() && heap.offset(blocks[499].0).is_none());
        for (block, old, byte) in &mut blocks {
            let size = old.size() * 2;
            // SAFETY: the block was allocated with this layout.
            unsafe {
                *block = heap.realloc(*block, *old, size);
                assert!(content(*block, old.size()).iter().all(|found| found == byte));
                *old = layout(size, old.align());
                content(*block, size).fill(*byte);
            }
        }
        for (block, layout, byte) in blocks.into_iter().rev() {
            // SAFETY: the block was reallocated with this layout.
            unsafe {
                assert!(content(block, layout.size()).iter().all(|found| *found == byte));
                heap.dealloc(block, layout);
            }
        }
    }

    #[test]
    fn the_last_block_grows_shrinks_and_returns_in_place() {
        let heap = Box::new(Heap::new());
        // SAFETY: each block is used with the layout of its last allocation.
        unsafe {
            let first = heap.alloc(layout(10, 1));
            let last = heap.alloc(layout(100, 4));
            assert_eq!(heap.realloc(last, layout(100, 4), 5000), last);
            assert_eq!(heap.realloc(last, layout(5000, 4), 50), last);
            assert_eq!(heap.used.get(), heap.offset(last).unwrap() + 50);
            // Another block is behind this one, so it moves to grow, and stays to shrink.
            assert_eq!(heap.realloc(first, layout(10, 1), 4), first);
            assert_ne!(heap.realloc(first, layout(4, 1), 8), first);
            heap.dealloc(last, layout(50, 4));
            let all = layout(ARENA_BYTES, 1);
            let large = heap.alloc(all);
            assert_eq!(heap.offset(large), None);
            content(large, ARENA_BYTES).fill(1);
            heap.dealloc(large, all);
            // The place of a last block that outgrows the arena is free again.
            let used = heap.used.get();
            let last = heap.alloc(layout(100, 1));
            content(last, 100).fill(7);
            let moved = heap.realloc(last, layout(100, 1), ARENA_BYTES);
            assert_eq!((heap.offset(moved), heap.used.get()), (None, used));
            assert!(content(moved, 100).iter().all(|byte| *byte == 7));
            heap.dealloc(moved, all);
        }
    }

    #[test]
    fn the_arena_can_be_filled_to_its_end() {
        let heap = Box::new(Heap::new());
        let all = layout(ARENA_BYTES, 1);
        // SAFETY: each block is used with its layout.
        unsafe {
            let block = heap.alloc(all);
            assert_eq!(heap.offset(block), Some(0));
            let more = heap.alloc(layout(1, 1));
            assert_eq!(heap.offset(more), None);
            heap.dealloc(more, layout(1, 1));
            heap.dealloc(block, all);
        }
        assert_eq!(heap.used.get(), 0);
    }
}
