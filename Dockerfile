# The server in a container:
#
#   docker build --tag warren .
#   docker run --detach --name warren --publish 127.0.0.1:4600:4600 --volume warren:/srv/data warren
#   docker exec --interactive --tty warren warren account add ada
#
# The target `archive` contains the archive of a release and its checksum (`cargo xtask dist`):
#
#   docker build --target archive --output archives .

FROM debian:bookworm AS build
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup PATH=/usr/local/cargo/bin:$PATH
WORKDIR /src
COPY . .
RUN .ci/setup.sh run && cargo xtask dist

FROM scratch AS archive
COPY --from=build /src/target/archive/ /

FROM debian:bookworm-slim
# The certificates are for PostgreSQL and for `warren sync` to other servers.
RUN --mount=type=bind,from=build,source=/src/target/archive,target=/archive \
    apt-get update && \
    apt-get install --yes --no-install-recommends ca-certificates && \
    rm -rf /var/lib/apt/lists/* && \
    tar -C /usr/local --strip-components=1 -xzf /archive/warren-*.tar.gz && \
    useradd --system --uid 4600 --home-dir /srv warren && \
    install --directory --owner=warren --mode=700 /srv/data
USER warren
WORKDIR /srv
VOLUME /srv/data
EXPOSE 4600
# Every option of `warren serve` is also a variable: docs/operating/settings.md.
ENV WARREN_LISTEN=0.0.0.0:4600
ENTRYPOINT ["warren"]
CMD ["serve"]
