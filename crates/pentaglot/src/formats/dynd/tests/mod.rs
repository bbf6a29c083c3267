//! The frozen profile, compared with vectors that other programs wrote.

mod golden;
mod hub;
mod limits;
mod merkle;
mod profile;
mod property;
mod shapes;
mod storage;
