//! [`setters`]: the setters of options structs.

/// Defines a setter for each field, which returns the options: `texts` are fields of the type `Option<String>`;
/// `values` have the given type, or are an `Option` of it.
macro_rules! setters {
    (
        texts [$($text:ident($text_field:ident),)*]
        values [$($(#[$attribute:meta])* $setter:ident($field:ident: $type:ty),)*]
    ) => {
        $(
            #[doc = concat!("Sets [`", stringify!($text_field), "`](Self::", stringify!($text_field), ").")]
            #[must_use]
            pub fn $text(mut self, value: impl Into<String>) -> Self {
                self.$text_field = Some(value.into());
                self
            }
        )*
        $(
            $(#[$attribute])*
            #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
            #[must_use]
            pub fn $setter(mut self, value: $type) -> Self {
                self.$field = value.into();
                self
            }
        )*
    };
}
