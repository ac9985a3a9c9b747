# One image for the three programs: they share nearly all of their code, and one tag means that a
# scheduler and a worker of different versions are never deployed by accident.
#
#   docker build -t sexton .
#   docker run --rm sexton scheduler --help

FROM rust:1.95-slim-bookworm AS build
WORKDIR /source

# Queries are checked against `.sqlx/`; no server is reachable from here.
ENV SQLX_OFFLINE=true

COPY . .

# The caches keep the dependencies and what was built of them from one build to the next, whichever
# file was changed. They are not part of the image, hence the copy in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/source/target,sharing=locked \
    cargo build --locked --release \
        --package sexton-scheduler --package sexton-worker --package sexton-console \
        --bin scheduler --bin worker --bin sexton \
    && install -D --mode=0755 --target-directory=/programs \
        target/release/scheduler target/release/worker target/release/sexton

FROM debian:bookworm-slim

# Root certificates for `amqps://`, `sslmode=verify-full` and HTTP tasks.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*

# A fixed number, so that volumes and Kubernetes' `runAsNonRoot` can rely on it.
RUN groupadd --gid 10001 sexton \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin sexton

COPY --from=build /programs/ /usr/local/bin/

USER 10001:10001
WORKDIR /

# Health: `GET /livez` and `GET /readyz` on this port, in `scheduler` and `worker` alike. No
# HEALTHCHECK here, because `sexton` answers none; docker-compose.yml has one for the two services.
ENV HEALTH_ADDR=0.0.0.0:8080 \
    LOG_FORMAT=json
EXPOSE 8080
# `sexton serve`: console, API and pings. It listens to other machines only with SERVE_ADDR=0.0.0.0:8420.
EXPOSE 8420

# The programs are started directly, without a shell in between, so that SIGTERM reaches them.
CMD ["sexton", "--help"]
