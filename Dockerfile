# A small image with a static ralph binary, git, bash and an unprivileged user.
#
#   docker build -t ralph .
#   docker run --rm -it ralph demo
#
# The image contains no agent; docs/install.md shows how to add one.

FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
RUN cargo build --locked --release --bin ralph

FROM alpine:3.22
# bash runs driver scripts; git detects whether an iteration changed anything.
RUN apk add --no-cache bash git \
    && adduser -D -u 1000 ralph \
    && mkdir /work \
    && chown ralph:ralph /work
COPY --from=build /src/target/release/ralph /usr/local/bin/ralph
USER ralph
WORKDIR /work
ENTRYPOINT ["ralph"]
CMD ["--help"]
