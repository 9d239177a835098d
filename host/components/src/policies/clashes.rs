//! Detection of policies whose names would give them access to another component's tables.

use tollgate_store::storage::Namespace;

use super::member::Member;
use super::policy::{Policy, Unloaded};
use crate::builtin;
use crate::names::prefixes_clash;

/// Refuses different components with the same name. Two such policies would share their tables, and each could forge
/// what the other remembers. One component under several of the operator's names does not clash with itself.
pub(super) fn refuse_namesakes(members: &mut [Member]) {
    refuse_each(members, |policy, before| {
        let own = &policy.manifest.name;
        let is_other = |hash: &str| hash != policy.hash;
        let of_program =
            builtin::policy(own).filter(|bytes| is_other(&tollgate_core::hash::sha256_hex(bytes)));
        let others = before
            .iter()
            .filter_map(|other| other.policy.as_ref().ok().zip(Some(&other.name)));
        let earlier = others
            .filter(|(other, _)| other.manifest.name == *own && is_other(&other.hash))
            .map(|(_, name)| name)
            .next();
        match (of_program, earlier) {
            (Some(_), _) => Some(format!(
                "the name in its manifest, `{own}`, belongs to a built-in policy; rename the component"
            )),
            (None, Some(earlier)) => Some(format!(
                "the name in its manifest, `{own}`, already belongs to the component of [policies.{earlier}]; rename \
                 one of the components"
            )),
            (None, None) => None,
        }
    });
}

/// Refuses a policy whose tables could be another's. The error names both. Otherwise the policy could change what the
/// other one remembers, such as the answers of people.
pub(super) fn refuse_clashes(members: &mut [Member], known: &[String]) {
    refuse_each(members, |policy, before| {
        let loaded = before.iter().filter_map(|other| {
            let policy = other.policy.as_ref().ok()?;
            Some((
                policy.manifest.name.as_str(),
                other.name.as_str(),
                policy.is_builtin(),
            ))
        });
        clash(&policy.manifest.name, policy.is_builtin(), loaded, known)
    });
}

/// Refuses each loaded policy with a problem. `problem` gets the policy and the members before it.
fn refuse_each(members: &mut [Member], problem: impl Fn(&Policy, &[Member]) -> Option<String>) {
    for place in 0..members.len() {
        let (before, rest) = members.split_at_mut(place);
        let Some(Member { name, policy, .. }) = rest.first_mut() else {
            continue;
        };
        let Ok(loaded) = policy else {
            continue;
        };
        if let Some(problem) = problem(loaded, before) {
            *policy = Err(Unloaded::of(name, &loaded.origin, vec![problem]));
        }
    }
}

/// Other owner of a policy's tables, with a remedy. `loaded` has the names of policies, their places in the chain,
/// and whether they are built in. `known` has the components with tables in the database.
fn clash<'a>(
    own: &str,
    is_builtin: bool,
    mut loaded: impl Iterator<Item = (&'a str, &'a str, bool)>,
    known: &[String],
) -> Option<String> {
    let clashes = |other: &str| other != own && prefixes_clash(other, own);
    if is_builtin {
        // Names of built-in components do not clash, and built-in components keep them even if another one took a
        // similar name earlier.
        return None;
    }
    // A longer name reaches nothing of a built-in policy, which is trusted with what it reaches itself.
    let is_trusted = |other: &str| other.len() < own.len();
    if let Some(other) = builtin::policies().find(|other| clashes(other) && !is_trusted(other)) {
        return Some(format!(
            "the name in its manifest is `{own}`, so its tables could clash with those of the built-in policy \
             `{other}`; rename the component"
        ));
    }
    let theirs =
        |&(other, _, is_builtin): &(&str, &str, bool)| clashes(other) && !(is_builtin && is_trusted(other));
    if let Some((other, place, _)) = loaded.find(theirs) {
        return Some(format!(
            "the name in its manifest is `{own}`, so its tables could clash with those of `{other}` in \
             [policies.{place}]; rename one of the components"
        ));
    }
    let known = known
        .iter()
        .filter_map(|known| known.strip_prefix(Namespace::POLICIES));
    // If another component takes a built-in policy's name, it is compared with the tables that exist then.
    let is_builtin = |other: &str| builtin::policies().any(|name| name == other);
    let mut known = known.filter(|other| clashes(other) && !(is_builtin(other) && is_trusted(other)));
    let other = known.next()?;
    Some(format!(
        "the name in its manifest is `{own}`, so its tables could clash with those of policy `{other}` in the \
         database; rename the component"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clash_of(own: &str, loaded: &[(&str, &str)], known: &[&str]) -> Option<String> {
        let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
        clash(
            own,
            false,
            loaded.iter().map(|&(name, place)| (name, place, false)),
            &known,
        )
    }

    #[test]
    fn no_policy_gets_anothers_tables_by_its_name() {
        for (own, loaded, known, other) in [
            (
                "side-effect",
                vec![],
                vec![],
                "built-in policy `side-effect-approval`",
            ),
            ("side", vec![], vec![], "built-in policy `side-effect-approval`"),
            (
                "mine-too",
                vec![("mine", "one")],
                vec![],
                "`mine` in [policies.one]",
            ),
            (
                "mine",
                vec![("mine-too", "one")],
                vec![],
                "`mine-too` in [policies.one]",
            ),
            ("mine", vec![], vec!["policy-mine-too"], "policy `mine-too`"),
            ("mine-too", vec![], vec!["policy-mine"], "policy `mine`"),
        ] {
            let said = clash_of(own, &loaded, &known).expect(own);
            assert!(
                said.contains(&format!("`{own}`")) && said.contains(other),
                "{said}"
            );
        }
        // A pack's tables do not start with `policy_`, and a component does not clash with itself here.
        assert_eq!(
            clash_of(
                "mine",
                &[("mine", "one"), ("mining", "two")],
                &["mine-too", "policy-mine"]
            ),
            None
        );
        // A built-in policy is trusted with the longer names that it reaches, and nobody else with those of its name.
        let loaded = [("cel", "one", true)];
        assert_eq!(
            clash("cel-x", false, loaded.into_iter(), &["policy-cel".to_owned()]),
            None
        );
        let said = clash_of("cel-x", &[("cel", "one")], &[]).unwrap();
        assert!(said.contains("`cel` in [policies.one]"), "{said}");
        assert_eq!(
            clash("cel", true, std::iter::empty(), &["policy-cel-x".to_owned()]),
            None
        );
    }
}
