use super::*;

fn protections(text: &str) -> BTreeSet<String> {
    lasting(find(&text.parse().unwrap())).collect()
}

const WHOLE: &str = r#"
    [server]
    read_only = true
    [envelope]
    require = "always"
    ceiling = { max_mutations = 5 }
    [packs.gsd]
    enabled = false
    [packs.tasks]
    exclude = ["tasks_delete", "tasks_batch"]
    [policies.nights]
    source = "builtin:quiet-hours"
    tools = ["task_*"]
    [policies.nights.config]
    from = "22:00"
    to = "07:00"
    [policies.scan]
    source = "builtin:secret-scan"
"#;

#[test]
fn whatever_part_of_a_file_is_read_what_is_missing_is_known() {
    let whole = protections(WHOLE);
    let lines: Vec<&str> = WHOLE.lines().collect();
    let mut read = 0;
    for end in 0..lines.len() - 1 {
        // Some parts are not valid TOML, and are refused for that reason.
        if let Ok(table) = lines[..end].join("\n").parse::<Table>() {
            read += 1;
            let part: BTreeSet<String> = lasting(find(&table)).collect();
            assert!(part.is_subset(&whole) && part != whole, "{end}: {part:?}");
        }
    }
    assert!(read > 10, "{read}");
}

#[test]
fn another_file_says_the_same_of_a_policy_and_an_edit_need_not() {
    let read = |text: &str| find(&text.parse().unwrap());
    let one = read("[policies.a]\ntools = [\"x\"]\n");
    let other = read("[policies.a]\ntools = [\"y\"]\n");
    assert!(!one.is_subset(&other));
    assert_eq!(lost(&one, &other), BTreeSet::new());
    assert_eq!(describe(one.difference(&other)), "policies.a with the same value");
    assert!(read("[server]\nread_only = false\n").is_empty());
}

#[test]
fn another_file_has_the_same_values() {
    let read = |text: &str| find(&text.parse().unwrap());
    for (text, weaker) in [
        (
            "[approvals]\napprovers = [\"token:linus\"]\n",
            "[approvals]\napprovers = [\"local\"]\n",
        ),
        (
            "[envelope]\nrequire = \"always\"\n",
            "[envelope]\nrequire = \"never\"\n",
        ),
        (
            "[envelope.ceiling]\nmax_edits = 3\n",
            "[envelope.ceiling]\nmax_edits = 4\n",
        ),
        (
            "[[envelope.window]]\nper = \"1h\"\nmax_edits = 3\n",
            "[[envelope.window]]\nper = \"1h\"\nmax_edits = 4\n",
        ),
        ("[packs.a]\nexclude = [\"b\"]\n", "[packs.a]\nexclude = [\"c\"]\n"),
        (
            "[workspaces.a]\ngit = \"read\"\n",
            "[workspaces.a]\ngit = \"write\"\n",
        ),
    ] {
        let (own, other) = (read(text), read(weaker));
        assert!(!own.is_subset(&other), "{text}");
        assert_eq!(lost(&own, &other), BTreeSet::new(), "{text}");
    }
    let (own, other) = (
        read("[approvals]\napprovers = [\"a\"]\n"),
        read("[approvals]\napprovers = []\n"),
    );
    assert_eq!(
        describe(own.difference(&other)),
        "approvals.approvers with the same value"
    );
}

#[test]
fn a_policy_that_only_watches_protects_less() {
    let enforced = protections("[policies.a]\n");
    let weaker = |text: &str| {
        let other = protections(text);
        assert!(
            other.contains("policies/a") && !enforced.is_subset(&other),
            "{text}"
        );
    };
    weaker("[policies.a]\nmode = \"audit\"\n");
    weaker("[policies.a]\nfail_open = true\n");
    let stronger = protections("[policies.a]\nmode = \"enforce\"\nsha256 = \"0\"\ntools = [\"x\"]\n");
    assert!(enforced.is_subset(&stronger), "{stronger:?}");
    assert_eq!(policies(&stronger), BTreeSet::from(["a"]));
    assert_eq!(describe(&stronger), "policies.a");
    assert_eq!(
        describe(enforced.difference(&protections("[policies.a]\nmode = \"audit\"\n"))),
        "policies.a.mode = \"enforce\""
    );
}

#[test]
fn what_only_gives_away_is_none() {
    let text = "data_dir = \"d\"\n[server]\nhttp = \"127.0.0.1:1\"\n[packs.a]\nsource = \"a.wasm\"\n\
                [packs.a.grants]\nprocess = [\"git\"]\n[ledger]\nmirror = true\n";
    assert_eq!(protections(text), BTreeSet::new());
}

#[test]
fn records_are_kept_for_each_configuration() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDir::open(place.path()).unwrap();
    let records = Records::open(&data).unwrap();
    let (one, other) = (Path::new("/etc/one.toml"), Path::new("/etc/other.toml"));
    assert_eq!(records.of(one).unwrap(), None);
    records.remember(one, protections(WHOLE)).unwrap();
    records.remember(other, protections("[policies.b]\n")).unwrap();
    assert_eq!(
        records.of(one).unwrap().unwrap().policies(),
        BTreeSet::from(["nights", "scan"])
    );
    let others = records.others(Some(one)).unwrap();
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].policies(), BTreeSet::from(["b"]));
    let gone = protections("[policies.nights]\n[policies.new]\n");
    let forgotten = records.forget(one, &gone).unwrap();
    assert_eq!(policies(&forgotten), BTreeSet::from(["nights"]));
    assert_eq!(
        records.of(one).unwrap().unwrap().policies(),
        BTreeSet::from(["scan"])
    );
}

#[test]
fn one_file_has_one_record_however_its_path_is_written() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDir::open(&place.path().join("data")).unwrap();
    let records = Records::open(&data).unwrap();
    let folder = place.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let (file, link) = (folder.join("tollgate.toml"), place.path().join("link"));
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    records.remember(&file, protections(WHOLE)).unwrap();
    let gone = folder.join("gone.toml");
    records.remember(&gone, protections("[policies.b]\n")).unwrap();
    for (spelling, policy) in [
        ("folder/../folder/tollgate.toml", "scan"),
        ("./folder//./tollgate.toml", "scan"),
        ("link/tollgate.toml", "scan"),
        ("link/../folder/tollgate.toml", "scan"),
        ("link/gone.toml", "b"),
        ("folder/none/../gone.toml", "b"),
    ] {
        let record = records.of(&place.path().join(spelling)).unwrap().unwrap();
        assert!(record.policies().contains(policy), "{spelling}");
    }
    // A link to the file itself, before and after it points elsewhere.
    let own = place.path().join("own.toml");
    std::os::unix::fs::symlink(&file, &own).unwrap();
    assert!(records.of(&own).unwrap().is_some());
    std::fs::remove_file(&own).unwrap();
    std::fs::write(&own, "").unwrap();
    assert!(records.of(&own).unwrap().is_none());
    let missing = records.missing(Some(&own), &BTreeSet::new()).unwrap().unwrap();
    assert!(missing.protections.is_superset(&protections(WHOLE)));
    assert_eq!(missing.configs.len(), 2);
}

#[test]
fn records_of_an_earlier_version_are_found_and_become_one() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDir::open(&place.path().join("data")).unwrap();
    let records = Records::open(&data).unwrap();
    let file = place.path().join("tollgate.toml");
    std::fs::write(&file, "").unwrap();
    for (number, spelling) in ["./tollgate.toml", "data/../tollgate.toml"].iter().enumerate() {
        let record = serde_json::json!({
            "config": place.path().join(spelling),
            "protections": [format!("policies/p{number}")],
        });
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        let mut written = records.dir.open_with(format!("{number}.json"), &options).unwrap();
        written.write_all(record.to_string().as_bytes()).unwrap();
    }
    let record = records.of(&file).unwrap().unwrap();
    assert_eq!(record.policies(), BTreeSet::from(["p0", "p1"]));
    assert!(records.others(Some(&file)).unwrap().is_empty());
    records.remember(&file, record.protections).unwrap();
    assert_eq!(records.all().unwrap().len(), 1);
    assert_eq!(records.of(&file).unwrap().unwrap().policies().len(), 2);
}

#[test]
fn what_an_operator_took_away_or_does_without_is_not_missing() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDir::open(place.path()).unwrap();
    let records = Records::open(&data).unwrap();
    let (one, other) = (Path::new("/etc/one.toml"), Path::new("/etc/other.toml"));
    let both = protections("[server]\nread_only = true\n[policies.a]\n[policies.b]\n");
    let less = protections("[policies.a]\n");
    records.remember(one, both.clone()).unwrap();
    assert!(records.missing(Some(other), &both).unwrap().is_none());
    assert!(records.missing(None, &less).unwrap().is_some());
    let missing = records.missing(Some(other), &less).unwrap().unwrap();
    assert_eq!(describe(&missing.protections), "policies.b, server.read_only");
    records.forget(other, &missing.protections).unwrap();
    assert!(records.missing(Some(other), &less).unwrap().is_none());
    // Once the configuration had them, their loss counts again.
    records.remember(other, both.clone()).unwrap();
    assert_eq!(records.of(other).unwrap().unwrap().accepted, BTreeSet::new());
    records.remember(other, less.clone()).unwrap();
    assert!(records.missing(Some(other), &less).unwrap().is_none());
    // Without policies, other configurations do not bind.
    records
        .remember(one, protections("[server]\nread_only = true\n"))
        .unwrap();
    records.remember(other, BTreeSet::new()).unwrap();
    let third = Path::new("/etc/third.toml");
    assert!(records.missing(Some(third), &BTreeSet::new()).unwrap().is_none());
}

#[test]
fn settings_of_packs_and_room_for_artifacts_protect() {
    let found = protections(
        "[artifacts]\nenabled = true\nmax_mib = 8\nttl_hours = 1\n[packs.gsd.config]\nstrict = true\n",
    );
    let wanted = [
        "artifacts/max_mib",
        "artifacts/ttl_hours",
        "packs/gsd/config",
        "packs/gsd/config/strict",
    ];
    assert_eq!(found, wanted.map(str::to_owned).into());
}

#[test]
fn a_record_that_others_could_change_or_that_is_cut_off_is_no_record() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let data = DataDir::open(place.path()).unwrap();
    let records = Records::open(&data).unwrap();
    let config = Path::new("/etc/one.toml");
    records.remember(config, protections(WHOLE)).unwrap();
    let file = place.path().join(FOLDER).join(name(config));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(records.of(config).is_err());
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(records.of(config).unwrap().is_some());
    let whole = std::fs::metadata(&file).unwrap().len();
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(whole / 2)
        .unwrap();
    assert!(records.of(config).is_err());
}
