//! Random operations against a model in memory: state, revisions, undo and redo, and paths that name the same
//! step as identifiers do.

mod run;
mod state;

use proptest::prelude::*;

use run::Run;

#[derive(Debug, Clone)]
enum Op {
    Add(usize, u8),
    Define(usize, u8),
    Verify(usize),
    Done(usize),
    Close(usize),
    Force(usize),
    Reopen(usize),
    Block(usize, bool),
    Delete(usize),
    NodeAdd(usize),
    NodeStatus(usize, bool),
    NodeDelete(usize),
    Note,
    Complete,
    Undo,
    Redo,
}

fn op() -> impl Strategy<Value = Op> {
    let place = 0..12_usize;
    prop_oneof![
        3 => (0..14_usize, 1..3_u8).prop_map(|(at, count)| Op::Add(at, count)),
        2 => (place.clone(), 0..3_u8).prop_map(|(at, what)| Op::Define(at, what)),
        2 => place.clone().prop_map(Op::Verify),
        2 => place.clone().prop_map(Op::Done),
        4 => place.clone().prop_map(Op::Close),
        1 => place.clone().prop_map(Op::Force),
        2 => place.clone().prop_map(Op::Reopen),
        2 => (place.clone(), any::<bool>()).prop_map(|(at, on)| Op::Block(at, on)),
        2 => place.clone().prop_map(Op::Delete),
        2 => place.clone().prop_map(Op::NodeAdd),
        2 => (place.clone(), any::<bool>()).prop_map(|(at, done)| Op::NodeStatus(at, done)),
        1 => place.prop_map(Op::NodeDelete),
        1 => Just(Op::Note),
        1 => Just(Op::Complete),
        5 => Just(Op::Undo),
        4 => Just(Op::Redo),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tollgate_kit_test::cases(800), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_pack_does_what_the_model_does(ops in proptest::collection::vec(op(), 1..30)) {
        let mut run = Run::new();
        for op in &ops {
            run.step(op);
        }
        run.paths_and_ids();
    }

    /// Undoing everything and redoing it leaves each record as it was, to the byte.
    #[test]
    fn undo_then_redo_gives_the_same_bytes(ops in proptest::collection::vec(op(), 1..15)) {
        let mut run = Run::new();
        for op in ops.iter().filter(|op| !matches!(op, Op::Undo | Op::Redo)) {
            run.step(op);
        }
        let bytes = |run: &Run| run.session.sql("SELECT kind, id, root, parent, ordinal, position, status, body FROM tasks_records ORDER BY kind, id");
        let before = bytes(&run);
        let count = run.past.len();
        for _ in 0..count {
            run.travel(true);
        }
        for _ in 0..count {
            run.travel(false);
        }
        prop_assert_eq!(before, bytes(&run));
    }
}
