//! Pentaglot.
