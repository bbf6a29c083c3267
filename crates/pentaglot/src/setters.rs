//! [`setters`]: the setters of options structs.

/// A setter for each field: `with_rows(rows: Range<u64>)` sets `rows`, which is a `Range<u64>` or an `Option` of one, and
/// gives the options back.
macro_rules! setters {
    ($($(#[$attribute:meta])* $setter:ident($field:ident: $type:ty);)*) => {
        $(
            $(#[$attribute])*
            #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
            #[must_use]
            pub fn $setter(mut self, value: impl Into<$type>) -> Self {
                let value: $type = value.into();
                self.$field = value.into();
                self
            }
        )*
    };
}
