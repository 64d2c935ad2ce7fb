//! Parameters of a request. One that cannot be parsed is reported as JSON, as every other error is.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::response::ApiError;

/// The parameters in the path.
pub(super) struct PathParameters<T>(pub(super) T);

/// The parameters behind the path.
pub(super) struct QueryParameters<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parsed = Path::<T>::from_request_parts(parts, state).await;
        parsed
            .map(|Path(value)| Self(value))
            .map_err(|rejection| ApiError::new(rejection.status(), rejection.body_text()))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parsed = Query::<T>::from_request_parts(parts, state).await;
        parsed
            .map(|Query(value)| Self(value))
            .map_err(|rejection| ApiError::new(rejection.status(), rejection.body_text()))
    }
}
