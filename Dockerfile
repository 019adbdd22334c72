# The image of all services (the last stage), as `flotilla image build` makes it without Docker (docs/image.md): the same code makes the
# files, and a test compares how both start.

# bookworm-20260713-slim. Only the build runs in it; the image takes nothing from it.
FROM debian:bookworm-slim@sha256:7b140f374b289a7c2befc338f42ebe6441b7ea838a042bbd5acbfca6ec875818 AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv
WORKDIR /src
COPY . .
RUN scripts/setup && .venv/bin/flotilla image unpack /image

FROM scratch AS services
COPY --from=build /image/base /
COPY --from=build /image/dependencies /
COPY --from=build /image/flotilla /
USER 65532:65532
ENV PATH=/usr/local/bin:/usr/bin
ENV LANG=C.UTF-8
ENV PYTHONDONTWRITEBYTECODE=1
ENV PYTHONUNBUFFERED=1
WORKDIR /
LABEL org.opencontainers.image.title=flotilla
LABEL org.opencontainers.image.version=0.1.0
LABEL org.opencontainers.image.licenses=Apache-2.0
ENTRYPOINT ["/usr/local/bin/flotilla"]
CMD ["--help"]

# With what makes a local cluster: only compose.yaml uses it.
FROM services AS devcluster
COPY --from=build /image/devcluster /

FROM services
