//! The tests: one for each provider, way of running it, and class of cases.

macro_rules! all_classes {
    ($backend:literal in $isolation:literal) => {
        all_classes! { $backend in $isolation:
            background concurrency encoding ends input large leaks login output quoting signals state trees
        }
    };
    ($backend:literal in $isolation:literal: $($class:ident)+) => {
        $(
            #[test]
            fn $class() {
                let name = concat!(module_path!(), "::", stringify!($class));
                crate::conformance::round::class(name, $backend, $isolation, stringify!($class));
            }
        )+
    };
}

mod local {
    all_classes! { "local" in "process" }
}

mod acmebox_in_a_worker {
    all_classes! { "acmebox" in "process" }
}

mod acmebox_in_process {
    all_classes! { "acmebox" in "in_process" }
}

mod bubblewrap_in_a_worker {
    all_classes! { "bubblewrap" in "process" }
}

mod bubblewrap_in_process {
    all_classes! { "bubblewrap" in "in_process" }
}
