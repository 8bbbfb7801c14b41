//! Two layouts that do not fit, in one line: which member differs first, and how.

use abi_stable::abi_stability::abi_checking::{AbiInstability, AbiInstabilityError, AbiInstabilityErrors};
use abi_stable::type_layout::TLFieldOrFunction;

/// Finds the first member that differs in the ABI layer's report, which runs to hundreds of lines. Returns its path, and in
/// what it differs.
///
/// A member that differs makes the size of all that holds it differ as well, and a table of functions may have grown at its end.
/// So the first is named only where there is nothing else, and the second never.
pub(super) fn first_difference(errors: &AbiInstabilityErrors) -> (String, String) {
    tracing::debug!("{errors}");
    let causes = errors.errors.iter().flat_map(|error| error.errs.iter().map(move |cause| (error, cause)));
    let first = causes.filter(|(error, cause)| !is_growth(error, cause)).min_by_key(|(_, cause)| rank(cause));
    let Some((error, cause)) = first else {
        let difference = "each side has members that the other has not";
        return ("root".into(), difference.into());
    };
    let mut member: Vec<&str> = error.stack_trace.iter().map(|step| name_of(&step.found)).collect();
    let difference = match cause {
        AbiInstability::UnexpectedField(fields) => {
            member.push(fields.expected.name());
            format!("the library has `{}` in its place", fields.found.name())
        }
        AbiInstability::FieldCountMismatch(_) => match surplus(error) {
            Some((name, owner)) => {
                member.push(name);
                format!("only {owner} has it")
            }
            None => "it has other members".into(),
        },
        AbiInstability::Name(_) | AbiInstability::MismatchedPrimitive(_) => "its type is another".into(),
        AbiInstability::MismatchedPrefixSize(_) => "its first version had other members".into(),
        AbiInstability::Size(_) | AbiInstability::Alignment(_) => "its size is another".into(),
        AbiInstability::TooManyVariants(_) | AbiInstability::UnexpectedVariant(_) => {
            "it has other variants".into()
        }
        _ => "it is declared in another way".into(),
    };
    (readable(&member), difference)
}

/// Returns whether this says no more than that a table has more functions on one side.
fn is_growth(error: &AbiInstabilityError, cause: &AbiInstability) -> bool {
    let in_table = error.stack_trace.last().is_some_and(|step| match &step.found {
        TLFieldOrFunction::Field(field) => field.layout().is_prefix_kind(),
        TLFieldOrFunction::Function(_) => false,
    });
    in_table && matches!(cause, AbiInstability::Size(_) | AbiInstability::FieldCountMismatch(_))
}

/// Returns how much a difference follows from others: the smallest is the cause.
fn rank(cause: &AbiInstability) -> u8 {
    match cause {
        AbiInstability::Size(_) | AbiInstability::Alignment(_) => 2,
        AbiInstability::FieldCountMismatch(_) | AbiInstability::MismatchedPrefixSize(_) => 1,
        _ => 0,
    }
}

/// Returns the first member that one side has beyond the last of the other's, and whose it is.
fn surplus(error: &AbiInstabilityError) -> Option<(&'static str, &'static str)> {
    let step = error.stack_trace.last()?;
    let (TLFieldOrFunction::Field(host), TLFieldOrFunction::Field(library)) = (&step.expected, &step.found)
    else {
        return None;
    };
    let (host, library) = (host.layout().get_fields()?, library.layout().get_fields()?);
    let (longer, owner) =
        if host.len() > library.len() { (host, "the host") } else { (library, "the library") };
    let first = longer.get(host.len().min(library.len()))?;
    Some((first.name(), owner))
}

/// Returns the last steps of a path through the layout that mean something to a person, such as
/// `execute.__returns.exit_code`: the ABI layer's own wrappings are left out.
fn readable(steps: &[&str]) -> String {
    let wrapping = |step: &&&str| {
        let numbered = step.strip_prefix("field_").unwrap_or(step);
        !numbered.bytes().all(|byte| byte.is_ascii_digit())
            && !matches!(**step, "obj" | "vtable")
            && !step.contains(',')
    };
    let mut path: Vec<&str> = steps.iter().filter(wrapping).copied().collect();
    path.dedup();
    path[path.len().saturating_sub(3)..].join(".")
}

fn name_of(step: &TLFieldOrFunction) -> &'static str {
    match step {
        TLFieldOrFunction::Field(field) => field.name(),
        TLFieldOrFunction::Function(function) => function.name.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use abi_stable::abi_stability::abi_checking::{CheckingGlobals, check_layout_compatibility_with_globals};
    use abi_stable::type_layout::TypeLayout;

    use super::*;

    /// One request and the trait that takes it, as a version has them.
    macro_rules! version {
        ($name:ident, { $($field:ident: $type:ident),* }, { $($before:tt)* }, { $($after:tt)* }) => {
            #[allow(clippy::cast_ptr_alignment, reason = "the ABI layer's macro reads its tables so")]
            mod $name {
                use abi_stable::std_types::{RBox, RString};
                use abi_stable::{StableAbi, sabi_trait};

                #[allow(dead_code, reason = "only its layout is looked at")]
                #[repr(C)]
                #[derive(StableAbi)]
                pub struct Request {
                    command: RString,
                    $($field: $type,)*
                }

                #[sabi_trait]
                pub trait Shared {
                    $($before)*
                    #[sabi(last_prefix_field)]
                    fn execute(&self, request: Request) -> u32;
                    $($after)*
                }

                pub(super) const LAYOUT: &abi_stable::type_layout::TypeLayout =
                    <Shared_TO<'static, RBox<()>> as StableAbi>::LAYOUT;
            }
        };
    }
    version!(first, { timeout_ms: u64 }, {}, {});
    version!(changed, { timeout_ms: RString }, {}, {});
    version!(renamed, { limit_ms: u64 }, {}, {});
    version!(longer, { timeout_ms: u64, more: u64 }, {}, {});
    version!(
        inserted,
        { timeout_ms: u64 },
        {
            fn ping(&self) -> u32;
        },
        {}
    );
    version!(
        grown,
        { timeout_ms: u64 },
        {},
        {
            fn later(&self) -> u32 {
                7
            }
        }
    );

    fn between(host: &'static TypeLayout, library: &'static TypeLayout) -> (String, String) {
        let checked = check_layout_compatibility_with_globals(host, library, &CheckingGlobals::new());
        first_difference(&checked.unwrap_err())
    }

    #[test]
    fn the_member_itself_is_named_and_not_what_holds_it() {
        let another = ("execute.param_1.timeout_ms".to_owned(), "its type is another".to_owned());
        assert_eq!(between(first::LAYOUT, changed::LAYOUT), another);
        assert_eq!(between(changed::LAYOUT, first::LAYOUT), another);
        assert_eq!(between(grown::LAYOUT, changed::LAYOUT), another, "what has grown is no difference");
    }

    #[test]
    fn members_that_only_one_side_has_are_named() {
        let cases = [
            (
                first::LAYOUT,
                renamed::LAYOUT,
                "execute.param_1.timeout_ms",
                "the library has `limit_ms` in its place",
            ),
            (first::LAYOUT, longer::LAYOUT, "execute.param_1.more", "only the library has it"),
            (longer::LAYOUT, first::LAYOUT, "execute.param_1.more", "only the host has it"),
            (first::LAYOUT, inserted::LAYOUT, "execute", "the library has `ping` in its place"),
        ];
        for (host, library, member, difference) in cases {
            assert_eq!(between(host, library), (member.to_owned(), difference.to_owned()));
        }
    }

    #[test]
    fn the_member_that_differs_is_named_in_a_few_steps() {
        let steps = [
            "0",
            "register",
            "register.,",
            "obj",
            "vtable",
            "0",
            "create_environment",
            "create_environment",
            "__returns",
            "field_0",
            "obj",
            "vtable",
            "0",
            "execute",
            "execute",
            "__returns",
            "field_0",
            "exit_code",
        ];
        assert_eq!(readable(&steps), "execute.__returns.exit_code");
        assert_eq!(readable(&[]), "");
    }
}
