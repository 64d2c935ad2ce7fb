//! One picture for each mistake that people make.
