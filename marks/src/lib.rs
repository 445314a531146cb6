//! What a mark is and where it is kept. No async, no HTTP.
