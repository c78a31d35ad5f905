# The same image as `make image` writes, for those who build with Docker: docs/image.md.
#   docker buildx build --build-arg VERSION=$(git describe --tags --always) --tag wva .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETPLATFORM VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go run -C tools/image . --tree /tree --version "$VERSION" \
      --platform "${TARGETPLATFORM:-linux/$(go env GOARCH)}"

FROM scratch
COPY --from=build /tree /
ARG VERSION=dev
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="wva" \
      org.opencontainers.image.description="WVA, the Workload Variant Autoscaler: an autoscaler for LLM inference on Kubernetes that KEDA calls" \
      org.opencontainers.image.source="https://github.com/wva-project/wva" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
WORKDIR /
EXPOSE 8080/tcp 9090/tcp
USER 65532:65532
ENTRYPOINT ["/wva"]
