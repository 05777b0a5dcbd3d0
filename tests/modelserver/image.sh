#!/usr/bin/env bash
# Builds the scripted model server and imports it as an image of one file.
set -euo pipefail
cd "$(dirname "$0")/../.."
image=localhost/agent-container-modelserver:latest
mkdir -p build
CGO_ENABLED=0 GOOS=linux GOARCH=$(docker version --format '{{.Server.Arch}}') \
	go build -trimpath -buildvcs=false -ldflags '-s -w' -o build/modelserver ./tests/modelserver
sum=$(sha256sum build/modelserver | cut -c1-64)
if [ "$(docker image inspect --format '{{.Comment}}' "$image" 2>/dev/null)" != "$sum" ]; then
	tar --create --directory build modelserver |
		docker import --message "$sum" --change 'ENTRYPOINT ["/modelserver"]' --change 'EXPOSE 8080' - "$image" >/dev/null
fi
