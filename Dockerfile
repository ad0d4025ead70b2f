# The server in a container: docs/operating/container.md. The target `archive` is the archive of a
# release and its checksum (`cargo xtask dist`), which needs BuildKit (the package docker-buildx):
#
#   docker build --target archive --output archives .

FROM debian:bookworm AS build
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup PATH=/usr/local/cargo/bin:$PATH
WORKDIR /src
COPY . .
# `warren bench` prints this with its figures: --build-arg WARREN_COMMIT=$(git rev-parse --short HEAD)
ARG WARREN_COMMIT
# Debian 12, Ubuntu 22.04 and RHEL 9 have this glibc.
RUN .ci/setup.sh run && cargo xtask dist --glibc-max 2.34 && \
    mkdir /warren && tar -C /warren --strip-components=1 -xzf target/archive/warren-*.tar.gz

FROM scratch AS archive
COPY --from=build /src/target/archive/ /

FROM debian:bookworm-slim
# The certificates are for PostgreSQL and for `warren sync` to other servers.
RUN apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --system --uid 4600 --home-dir /srv warren && \
    install --directory --owner=warren --mode=700 /srv/data
COPY --from=build /warren/ /usr/local/
USER 4600
WORKDIR /srv
VOLUME /srv/data
EXPOSE 4600
# Every option of `warren serve` is also a variable: docs/operating/settings.md.
ENV WARREN_LISTEN=0.0.0.0:4600
ENTRYPOINT ["warren"]
CMD ["serve"]
