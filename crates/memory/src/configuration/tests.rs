//! Unit tests of the configuration: the three ways in, the refusals, and what is in force.

use super::*;

fn refused(text: &str) -> String {
    let error = Configuration::parse(text).expect_err(text);
    assert!(error.is_configuration(), "{text}: {error:?}");
    error.to_string()
}

#[test]
fn every_key_shows_a_value_that_it_reads_back() {
    let text = "large_segment_size_mb:32,max_split_size_mb:64,max_non_split_rounding_mb:8,\
                roundup_power2_divisions:[256:1,512:2,1024:4,>:8],garbage_collection_threshold:0.8,\
                expandable_segments:True,memory_limit:1.5GiB,memory_soft_limit:512 MiB,per_process_memory_fraction:0.5,\
                huge_pages:False,pinned_limit:1GB,history:alloc,history_entries:7,threads:3,simd:avx2,\
                spill:true,chaos_seed:7,dry_upper_bounds:True,chunk_size:64,prefetch_buffers:3,\
                cleanup_every:8,final_cleanup:true";
    let first = Configuration::parse(text).unwrap();
    let again = Configuration::parse(&first.to_text()).unwrap();
    assert_eq!(first.describe(), again.describe());
    assert_eq!(first.memory_limit_bytes(), Some(3 << 29));
    assert_eq!(first.pinned_limit_bytes(), Some(1_000_000_000));
    assert_eq!(first.max_non_split_rounding_bytes, 8 * MIB);
}

#[test]
fn the_defaults_described_are_the_defaults_in_force() {
    for (key, setting) in Configuration::keys().iter().zip(Configuration::default().describe()) {
        let default = match key.name {
            "max_non_split_rounding_mb" => "20",
            _ => key.default,
        };
        assert_eq!(setting.value, default, "{}", key.name);
        assert_eq!(setting.given_by, GivenBy::Default);
    }
    assert_eq!(Configuration::default().to_text(), "");
}

#[test]
fn an_unknown_key_names_near_matches() {
    assert!(refused("max_split_size:64").contains("did you mean `max_split_size_mb`?"));
    assert!(refused("memory_limti:1GiB").contains("`memory_limit`"));
    assert!(refused("fraction:0.5").contains("`per_process_memory_fraction`"));
    assert!(refused("zebra:1").contains("the keys are caching, "));
}

#[test]
fn a_pytorch_option_without_a_meaning_here_says_so() {
    let message = refused("backend:native");
    assert!(
        message.contains("option of PyTorch") && message.contains("one allocator"),
        "{message}"
    );
}

#[test]
fn a_bad_value_names_the_key_and_what_it_takes() {
    for (text, part) in [
        ("caching:yes", "true or false"),
        ("expandable_segments:1", "true or false"),
        ("large_segment_size_mb:10", "at least 11"),
        ("max_split_size_mb:19", "at least 20"),
        ("max_split_size_mb:99999999999999", "whole number of MiB"),
        ("garbage_collection_threshold:1", "between 0 and 1"),
        ("garbage_collection_threshold:NaN", "between 0 and 1"),
        ("per_process_memory_fraction:0", "above 0"),
        ("memory_limit:-1", "number of bytes"),
        ("memory_limit:0", "above 0"),
        ("threads:0", "at least 1"),
        ("simd:sse", "avx2"),
        ("chunk_size:0", "or none"),
        ("cleanup_every:never", "or off"),
        ("prefetch_buffers:4", "1, 2 or 3"),
        ("final_cleanup:yes", "true or false"),
        ("history:some", "off, state, alloc or all"),
        ("roundup_power2_divisions:3", "power of two"),
        ("roundup_power2_divisions:[256:1,1024:2]", "twice the one before"),
        ("roundup_power2_divisions:[>:1,256:2]", "before `>`"),
        ("roundup_power2_divisions:[256:1,>:2,512:4]", "last row"),
        ("roundup_power2_divisions:[65536:2]", "32768"),
    ] {
        let message = refused(text);
        let key = text.split(':').next().unwrap();
        assert!(message.contains(key) && message.contains(part), "{text}: {message}");
    }
}

#[test]
fn a_key_without_effect_is_refused() {
    for (text, part) in [
        ("caching:false,garbage_collection_threshold:0.5", "`garbage_collection_threshold`"),
        ("caching:false,max_split_size_mb:64", "`max_split_size_mb`"),
        ("caching:false,expandable_segments:True", "`expandable_segments`"),
        ("max_non_split_rounding_mb:8", "`max_split_size_mb`"),
        ("roundup_power2_divisions:1", "changes nothing"),
        ("roundup_power2_divisions:[256:1,>:1]", "changes nothing"),
        ("memory_limit:1GiB,memory_soft_limit:1GiB", "`memory_soft_limit`"),
        ("memory_limit:1GiB,default_cap_fraction:0.5", "`default_cap_fraction`"),
        ("per_process_memory_fraction:0.5,default_cap_fraction:0.5", "`default_cap_fraction`"),
        ("history_entries:5", "`history_entries`"),
        ("history:state,history_entries:5", "`history_entries`"),
    ] {
        let message = refused(text);
        assert!(message.contains("no effect") && message.contains(part), "{text}: {message}");
    }
    assert!(refused("max_split_size_mb:20,large_segment_size_mb:64").contains("at least"));
}

#[test]
fn a_program_may_prefer_expandable_segments_where_nothing_was_said() {
    let preferred = |text: &str| {
        let chosen = Configuration::parse(text).unwrap().preferring_expandable_segments();
        let row = chosen.describe().into_iter().find(|row| row.key == "expandable_segments");
        let row = row.unwrap();
        assert_eq!(row.value == "true", chosen.expandable_segments(), "{}", row.value);
        (chosen.expandable_segments(), chosen.requires_expandable_segments(), row.given_by)
    };
    assert_eq!(preferred(""), (true, false, GivenBy::Program));
    assert_eq!(preferred("threads:3"), (true, false, GivenBy::Program));
    assert_eq!(preferred("expandable_segments:True"), (true, true, GivenBy::Text));
    assert_eq!(preferred("expandable_segments:False"), (false, false, GivenBy::Text));
    assert_eq!(preferred("caching:false"), (false, false, GivenBy::Default));
    assert_eq!(preferred("max_split_size_mb:64"), (false, false, GivenBy::Default));
}

#[test]
fn malformed_text_is_refused_and_empty_text_is_not() {
    for text in
        ["caching", ":", "caching:", ":true", ",,", "a:[b", "a:b]", "caching:true,caching:true"]
    {
        refused(text);
    }
    for text in ["", "  ", "caching:true,", " caching : true "] {
        assert!(Configuration::parse(text).unwrap().caching());
    }
}

#[test]
fn divisions_fill_the_slots_that_pytorch_fills() {
    let slots = |text: &str| {
        Configuration::parse(&format!("roundup_power2_divisions:{text}"))
            .unwrap()
            .roundup_power2_divisions
    };
    assert_eq!(slots("4"), [4; ROUNDUP_SLOTS]);
    // 256 MiB is slot 8.
    assert_eq!(slots("[256:1,512:2,1024:4,>:8]"), [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8]);
    assert_eq!(slots("[2:8]"), [8, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn toml_says_the_same_as_text() {
    let toml = "max_split_size_mb = 64\nmemory_limit = \"2 GiB\"\ngarbage_collection_threshold = 0.5\n\
                huge_pages = false\nhistory = \"all\"\n\
                roundup_power2_divisions = { 256 = 1, 512 = 2, \">\" = 4 }";
    let text = "max_split_size_mb:64,memory_limit:2GiB,garbage_collection_threshold:0.5,huge_pages:false,\
                history:all,roundup_power2_divisions:[256:1,512:2,>:4]";
    let from_toml = Configuration::parse_toml(toml).unwrap();
    assert_eq!(from_toml.to_text(), Configuration::parse(text).unwrap().to_text());
    for bad in ["memory_limit = [1]", "memory_limit =", "[memory]\nlimit = 1", "threads = 2.5"] {
        assert!(Configuration::parse_toml(bad).unwrap_err().is_configuration(), "{bad}");
    }
}

// Miri keeps programs from files.
#[cfg(not(miri))]
#[test]
fn a_file_is_named_as_the_origin() {
    let path =
        std::env::temp_dir().join(format!("plimsoll-configuration-{}.toml", std::process::id()));
    std::fs::write(&path, "threads = 2").unwrap();
    let read = Configuration::from_file(&path);
    std::fs::remove_file(&path).unwrap();
    let threads = read.unwrap().describe().into_iter().find(|s| s.key == "threads").unwrap();
    assert_eq!(threads.given_by, GivenBy::File(path));
    assert!(Configuration::from_file("/no/such/file.toml").unwrap_err().is_configuration());
}
