# The demo of mcastlab: one file over lossy links in the simulator and in Mininet, side by side.
#     docker build --tag mcastlab .
#     docker run --rm --privileged mcastlab
# Without --privileged the kernel refuses network namespaces, and the simulator's result is shown alone.
FROM debian:12.11-slim

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /opt/mcastlab

# Versions of Debian packages are those of the release above.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates make python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

# What .dockerignore lets through: the packages and what the set-up reads.
COPY . .

RUN make setup && rm -rf /var/lib/apt/lists/*

CMD ["make", "demo"]
