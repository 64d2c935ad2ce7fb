//! `section!` declares a section of `ralph.yml`: each key once, with its type, default, description, environment
//! variable and check.

/// Declares two structs: the merged settings, and the settings of one layer, in which every key is optional.
///
/// - The doc comment of a key is its description in the JSON schema and in `docs/config.md`.
/// - `#[environment("RALPH_X")]` names the environment variable that sets the key.
/// - `#[check(…)]` is a rule of the JSON schema, as in `#[schemars(…)]`. Loading enforces it.
/// - A key without a default is an `Option` in the merged settings.
/// - `and { … }` adds fields that no layer sets.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $name:ident, $partial:ident, $section:literal {
            $(
                $(#[doc = $doc:literal])*
                $(#[environment($variable:literal)])?
                $(#[check($($check:tt)*)])?
                $(#[serde($($serde:tt)*)])?
                $key:ident: $type:ty $(= $default:expr)?,
            )*
        }
        $(and {
            $(
                $(#[doc = $extra_doc:literal])*
                $extra:ident: $extra_type:ty,
            )*
        })?
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize)]
        pub struct $name {
            $(
                $(#[doc = $doc])*
                $(#[serde($($serde)*)])?
                pub $key: $crate::policy::section::setting_type!($type $(= $default)?),
            )*
            $($(
                $(#[doc = $extra_doc])*
                #[serde(skip)]
                pub $extra: $extra_type,
            )*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $crate::policy::section::setting_default!($($default)?),)*
                    $($($extra: Default::default(),)*)?
                }
            }
        }

        #[doc = concat!("The keys of [`", stringify!($name), "`] that one layer sets.")]
        #[derive(Debug, Clone, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $partial {
            $(
                $(#[doc = $doc])*
                $(#[schemars($($check)*)])?
                $(#[serde($($serde)*)])?
                pub $key: Option<$type>,
            )*
        }

        impl $crate::policy::section::LayerSection for $partial {
            const VARIABLES: &'static [$crate::policy::section::Variable<Self>] = &[
                $($($crate::policy::section::Variable {
                    name: $variable,
                    key: concat!($section, ".", stringify!($key)),
                    set: |layer, text| {
                        layer.$key = text.parse().or_else(|_| text.trim().parse()).ok();
                        layer.$key.is_some()
                    },
                },)?)*
            ];
        }

        impl $partial {
            /// Merges this layer into the settings of the lower layers.
            pub(crate) fn apply_to(self, settings: &mut $name) {
                $($crate::policy::section::override_with(self.$key, &mut settings.$key);)*
            }
        }
    };
}

macro_rules! setting_type {
    ($type:ty) => { Option<$type> };
    ($type:ty = $default:expr) => { $type };
}

macro_rules! setting_default {
    () => {
        None
    };
    ($default:expr) => {
        $default
    };
}

pub(crate) use {section, setting_default, setting_type};

/// A section of one layer.
pub(crate) trait LayerSection: Sized + 'static {
    /// The environment variables that set keys of this section.
    const VARIABLES: &'static [Variable<Self>];
}

/// An environment variable that sets a key.
pub(crate) struct Variable<Layer: 'static> {
    pub(crate) name: &'static str,
    /// The dotted key.
    pub(crate) key: &'static str,
    /// Sets the key. Returns false if the text has the wrong type.
    pub(crate) set: fn(&mut Layer, &str) -> bool,
}

/// Overwrites the setting if the layer sets a value.
pub(crate) fn override_with<Value, Setting: From<Value>>(value: Option<Value>, setting: &mut Setting) {
    if let Some(value) = value {
        *setting = value.into();
    }
}
